"""The page that people look at: rendered here, whole without JavaScript; a little keeps it live."""
