package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/feed"
)

// Line is an event in a file.
type Line struct {
	Position eventlog.Position `json:"position"`
	Stream   eventlog.Stream   `json:"stream"`
	Version  eventlog.Version  `json:"version"`
	Name     string            `json:"name"`
	At       string            `json:"at"`
	ID       string            `json:"id"`
	Data     json.RawMessage   `json:"data"`
}

// Files is a folder of JSON lines. Events up to its last line are not exported again. Each line
// is synced to disk before its event is acked.
type Files struct {
	dir   string
	file  *os.File
	block uint64            // number of the file: its block of perFile positions
	last  eventlog.Position // of the last line
	end   int64             // offset behind the last complete line
}

// perFile is the number of positions in one file.
const perFile = 1_000_000

// OpenFiles opens a folder, and continues after its last complete line.
func OpenFiles(dir string) (*Files, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	names, err := filepath.Glob(filepath.Join(dir, "events-*.jsonl"))
	if err != nil {
		return nil, err
	}
	f := &Files{dir: dir}
	for i := len(names) - 1; i >= 0 && f.last == 0; i-- { // the newest file may have no line yet
		if err := f.open(names[i]); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return f, nil
}

// open opens a file, finds its last line, and cuts off a line that a crash left incomplete.
func (f *Files) open(name string) (err error) {
	if err := f.Close(); err != nil {
		return err
	}
	if _, err := fmt.Sscanf(filepath.Base(name), "events-%d.jsonl", &f.block); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if f.file, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o640); err != nil {
		return err
	}
	text, err := io.ReadAll(f.file)
	if err != nil {
		return err
	}
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	f.end = int64(len(whole))
	if len(whole) > 0 {
		var line Line
		if err := json.Unmarshal(whole[bytes.LastIndexByte(whole[:len(whole)-1], '\n')+1:], &line); err != nil {
			return fmt.Errorf("%s: the last line: %w", name, err)
		}
		f.last = line.Position
	}
	return f.file.Truncate(f.end)
}

// Write appends an event, unless the folder has it.
func (f *Files) Write(m *message.Message) error {
	o, err := feed.OriginOf(m)
	if err != nil || o.Position <= f.last {
		return err
	}
	if block := uint64(o.Position) / perFile; f.file == nil || block != f.block {
		if err := f.open(filepath.Join(f.dir, fmt.Sprintf("events-%012d.jsonl", block))); err != nil {
			return err
		}
	}
	text, err := json.Marshal(Line{o.Position, o.Stream, o.Version, o.Name, m.Metadata[feed.KeyAt], m.UUID, json.RawMessage(m.Payload)})
	if err != nil {
		return err
	}
	// Write at the end of the last complete line, and not of the file: a failed attempt may
	// have left a part of this line.
	n, err := f.file.WriteAt(append(text, '\n'), f.end)
	if err := errors.Join(err, f.file.Sync()); err != nil {
		return err
	}
	f.end, f.last = f.end+int64(n), o.Position
	return nil
}

// Close closes the open file.
func (f *Files) Close() error {
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file = nil
	return err
}
