"""Linear rankers that minimise losses of documents, pairs and lists."""
