"""The handlers of a rule, as Python: what the code of one kind of event is made of."""
