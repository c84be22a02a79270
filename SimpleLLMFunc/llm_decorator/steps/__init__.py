"""The steps of a decorated call, in the order of design note 002."""
