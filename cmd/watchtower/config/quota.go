package config

// Quotas bound what one client may use. All keys of one client are one client.
type Quotas struct {
	Streams int // of events, open at one process
}

func (d *draft) quotas() []*setting {
	return []*setting{
		numbers("quota.streams", &d.Quotas.Streams, 64, 1, 10_000,
			"How many streams of events one client may have open at one process. Without an API key each address is a client; where addresses have no rate, all streams together are bounded."),
	}
}
