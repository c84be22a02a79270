"""Steps that functions and chats share."""
