package archive

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/archive"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// counting is a shelf that counts opened files.
type counting struct {
	Dir
	opened int
}

func (c *counting) Open(ctx context.Context, name string) (Blob, error) {
	c.opened++
	return c.Dir.Open(ctx, name)
}

// Complete reads only segments that may hold missing events, and none if nothing is missing.
func TestComplete(t *testing.T) {
	const part, parts = 97, 8
	all := recorded(1, part*parts) // each stream has events in every segment
	dir := t.TempDir()
	var segments []archive.Segment
	for n := range parts {
		_, s := write(t, dir, all[n*part:(n+1)*part], 50)
		segments = append(segments, s)
	}
	const stream = "tx-1-1"
	var whole []eventlog.Recorded
	for _, r := range all {
		if r.Stream == stream {
			whole = append(whole, r)
		}
	}
	head, tail := whole[:len(whole)/2], whole[len(whole)/2:]
	last := archive.Extent{First: segments[parts/2].First, Last: tail[len(tail)-1].Position}
	for name, c := range map[string]struct {
		after eventlog.Version
		given []eventlog.Recorded
		in    archive.Extent
		want  []eventlog.Recorded
		opens int
	}{
		"nobody knows where":     {0, nil, archive.Extent{}, whole, parts},
		"everywhere":             {0, nil, archive.Extent{First: 1, Last: part * parts}, whole, parts},
		"the second half":        {head[len(head)-1].Version, nil, last, tail, parts / 2},
		"the first, of both":     {0, tail, archive.Extent{First: 1, Last: head[len(head)-1].Position}, whole, parts / 2},
		"nothing, of all":        {0, whole, archive.Extent{}, whole, 0},
		"nothing, of what is it": {head[len(head)-1].Version, tail, archive.Extent{}, tail, 0},
	} {
		shelf := &counting{Dir: Dir(dir)}
		h := NewHistory(NewFiles(shelf, nil), segments, part*parts+1)
		got, err := h.Complete(t.Context(), stream, c.after, c.given, c.in)
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v: %s", name, err, diff)
		}
		if shelf.opened != c.opens {
			t.Errorf("%s: %d segments were opened, want %d", name, shelf.opened, c.opens)
		}
	}
}
