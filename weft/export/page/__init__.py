"""The files of the web page that runs an exported model; formats/web.py copies them."""
