"""Where matches go: one file per form, each behind the protocol `cep.sink.base.Sink`."""
