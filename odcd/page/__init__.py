"""The web page: rendered on the server and complete without JavaScript, which only keeps it
live."""
