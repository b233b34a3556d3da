"""What people run: sessions, inputs, plans and results meet here, and actions and caching are here."""
