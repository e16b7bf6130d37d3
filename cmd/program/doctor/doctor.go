package doctor

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/program/config"
)

// Examination is what to examine.
type Examination struct {
	Program string // in advice, such as "watchtower serve"
	Config  config.Config
	Readers []app.LogReader
	Now     func() time.Time
	Log     *slog.Logger
	Hashes  []string // transactions to explain
}

// Run examines the store, the readers, the endpoints, the queue and the named transactions. Its errors
// are of an examination that could not be finished.
func (x Examination) Run(ctx context.Context) (d Diagnosis, err error) {
	parts, heads := x.nodes(ctx)
	in, err := app.Inspect(ctx, x.Config, x.Log)
	if err != nil {
		d.add(parts...)
		return d, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	store, err := x.store(ctx, in)
	if err != nil {
		return d, err
	}
	readers, err := x.readers(ctx, in)
	if err != nil {
		return d, err
	}
	queue, err := x.queue(ctx, in)
	if err != nil {
		return d, err
	}
	d.add(append(append([]*Part{store, readers}, parts...), queue)...)
	for _, hash := range x.Hashes {
		one, err := x.transaction(ctx, in, heads, hash)
		if err != nil {
			return d, err
		}
		d.add(one)
	}
	return d, nil
}
