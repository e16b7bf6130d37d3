package esdbtest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest/esdbcluster"
)

// file keeps committed writes beyond the process, as a line of JSON each. It survives a
// killed process, but not a loss of power: nothing is flushed.
type file struct{ *os.File }

func (f *file) write(records []*esdbcluster.Record) error {
	line, err := json.Marshal(records)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return err
}

// OpenData reads the log from a file, and appends committed writes to it. It makes the
// file if there is none. An incomplete last line was never answered, and is cut off.
func OpenData(name string, now func() time.Time) (*Data, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	d := NewData(now)
	whole := int64(0)
	for lines := bufio.NewReader(f); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		var records []*esdbcluster.Record
		if err := json.Unmarshal(bytes.TrimSpace(line), &records); err != nil {
			return nil, errors.Join(fmt.Errorf("%s at byte %d: %w", name, whole, err), f.Close())
		}
		whole += int64(len(line))
		d.add(records)
	}
	if err := f.Truncate(whole); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if _, err := f.Seek(whole, io.SeekStart); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	d.file = &file{f}
	return d, nil
}

// Close closes the file.
func (d *Data) Close() error {
	if d.file == nil {
		return nil
	}
	return d.file.Close()
}
