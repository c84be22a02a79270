"""The same exchange through a client of the openai package that the user brought (`client=`), and copies of it per event loop."""
