"""What models cost and what their settings are worth: the commands that measure."""
