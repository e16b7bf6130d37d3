package commands

import (
	"context"
	"fmt"
	"io"

	"github.com/tempo-watchtower/watchtower/domain/payload"
)

// Vault stores signed bytes sealed, outside the log.
type Vault struct {
	Rows   PayloadRows
	Master payload.Master
	Random io.Reader
}

// Payload is signed bytes with their name.
type Payload struct {
	payload.Ref
	Raw []byte
}

// Keep seals and stores payloads; they are durable when it returns nil.
func (v Vault) Keep(ctx context.Context, payloads []Payload) error {
	rows := make([]payload.Sealed, len(payloads))
	for i, p := range payloads {
		var err error
		if rows[i], err = v.Master.Seal(v.Random, p.Ref, p.Raw); err != nil {
			return err
		}
	}
	if err := v.Rows.Put(ctx, rows); err != nil {
		return fmt.Errorf("keep %d payloads: %w", len(rows), err)
	}
	return nil
}

// Bytes returns a payload, or payload.ErrGone if it was erased or never stored.
func (v Vault) Bytes(ctx context.Context, ref payload.Ref) ([]byte, error) {
	row, err := v.Rows.Get(ctx, ref.Chain, ref.Hash)
	if err != nil {
		return nil, fmt.Errorf("payload %s: %w", ref.Hash, err)
	}
	return v.Master.Open(row)
}
