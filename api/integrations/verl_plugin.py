"""What verl loads by the entry point `verl.plugins`."""

from graphcredit.integrations.verl import register

register()
