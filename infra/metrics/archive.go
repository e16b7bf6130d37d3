package metrics

import "github.com/prometheus/client_golang/prometheus"

// archive holds the metrics of the archive of old events. Without an archive none is exported.
type archive struct {
	last, begins, segments, bytes, due *prometheus.GaugeVec
	failures                           *prometheus.CounterVec
}

func (m *Metrics) makeArchive() {
	m.archive = archive{
		last:     m.Gauge("archive_last_position", "Position of the last event that is in a segment of the archive."),
		begins:   m.Gauge("archive_begins_position", "Position from which the store's log is complete; lower positions are read from the archive."),
		segments: m.Gauge("archive_segments", "Segments of the archive."),
		bytes:    m.Gauge("archive_bytes", "Size of the archive's segments."),
		due:      m.Gauge("archive_due_segments", "Segments that are due and not written yet."),
		failures: m.Counter("archive_failures_total", "Failed passes of the archiver; each is retried."),
	}
}

// Archive is the archive's state after a pass of the archiver.
type Archive struct {
	Last, Begins  uint64
	Segments, Due int
	Bytes         uint64
}

// Archive sets the archive's metrics.
func (m *Metrics) Archive(a Archive) {
	m.archive.last.WithLabelValues().Set(float64(a.Last))
	m.archive.begins.WithLabelValues().Set(float64(a.Begins))
	m.archive.segments.WithLabelValues().Set(float64(a.Segments))
	m.archive.bytes.WithLabelValues().Set(float64(a.Bytes))
	m.archive.due.WithLabelValues().Set(float64(a.Due))
	m.archive.failures.WithLabelValues() // exported from the first pass on
}

// ArchiveFailed counts a failed pass.
func (m *Metrics) ArchiveFailed() { m.archive.failures.WithLabelValues().Inc() }
