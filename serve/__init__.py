"""What will run: the serve command, read from the forms people keep it in."""
