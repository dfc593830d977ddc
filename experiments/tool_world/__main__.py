"""`graphcredit` with the environment `tools`.

python -m experiments.tool_world collect STORE --env tools --policy oracle:0.5
"""

# To import it registers the environment.
from experiments.tool_world.environment import open_tools as open_tools
from graphcredit.cli.main import main

if __name__ == "__main__":
    main()
