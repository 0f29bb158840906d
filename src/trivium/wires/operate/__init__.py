"""The console: the page that shows a server, and the routes below it."""
