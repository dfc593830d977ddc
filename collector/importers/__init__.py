"""Import the logs of other programs: any list of messages becomes the steps of a trajectory."""
