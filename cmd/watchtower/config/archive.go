package config

// Snapshots says how folded states of long streams are kept.
type Snapshots struct {
	Every int // events; 0: none are kept
}

func (d *draft) archiving() []*setting {
	return []*setting{
		numbers("snapshots.every", &d.Snapshots.Every, 500, 0, 1_000_000,
			"After how many events of a group a snapshot of it is kept beside the due queue, so that commands need not read the whole group; 0 keeps none. They may be deleted at any time."),
	}
}
