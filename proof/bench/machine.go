package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// machine describes the machine of the measurements.
type machine struct {
	Date       string `json:"date"`
	Processors int    `json:"processors"`
	Model      string `json:"model,omitempty"`
	System     string `json:"system"`
	Go         string `json:"go"`
	// Before and After are load averages, including the benchmark itself.
	Before string `json:"loadBefore,omitempty"`
	After  string `json:"loadAfter,omitempty"`
}

func describeMachine(now time.Time) machine {
	return machine{
		Date: now.UTC().Format(time.DateOnly), Processors: runtime.GOMAXPROCS(0), Model: processor(),
		System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), Before: load(),
	}
}

func (m machine) String() string {
	return fmt.Sprintf("%s, %d processors (%s), %s, %s, load before %s, after %s",
		m.Date, m.Processors, m.Model, m.System, m.Go, m.Before, m.After)
}

// processor is the model's name, if known.
func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// load is the load averages of 1, 5 and 15 minutes, if known.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 3 {
		return "unknown"
	}
	return strings.Join(fields[:3], " ")
}
