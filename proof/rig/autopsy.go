package rig

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// autopsyWait bounds the wait for a process's metrics and for its stacks.
const autopsyWait = 10 * time.Second

var (
	stateMetric = regexp.MustCompile(`(?m)^watchtower_(log_|reader_|queue_|broadcast_|rpc_endpoint|lease|lane).* [^0].*$`)
	ownFunction = regexp.MustCompile(`(?m)^github\.com/tempo-watchtower/watchtower/([^\s]+)\([^()]*\)$`)
	waitingFor  = regexp.MustCompile(`^goroutine \d+ (?:gp=\S+ m=\S+ (?:mp=\S+ )?)?\[([^\]]*)\]:`)
)

// Autopsy ends the service and describes its state, for a failed test: the end of its log, the waits
// of its goroutines, and its metrics.
func (s *Service) Autopsy() string {
	if s.cmd == nil {
		return "it was never started"
	}
	ctx, cancel := context.WithTimeout(context.Background(), autopsyWait)
	defer cancel()
	var metrics string
	if r, err := ask(ctx, http.MethodGet, s.Metrics+"/metrics", nil, nil); err == nil {
		metrics = strings.Join(stateMetric.FindAllString(string(r.body), -1), "\n")
	}
	before, _ := os.Stat(s.Log)
	tail := s.Tail()
	_ = s.Signal(syscall.SIGQUIT) // an error means that it has ended
	select {
	case <-s.ended:
	case <-ctx.Done():
	}
	s.Kill()
	log, err := os.ReadFile(s.Log)
	if err != nil || before == nil {
		return tail
	}
	return fmt.Sprintf("%s\nits goroutines:\n%s\nits metrics:\n%s", tail, goroutines(log[min(int(before.Size()), len(log)):]), metrics)
}

// goroutines counts the goroutines of a stack dump that run the project's code, by the reason of
// their wait and the innermost functions.
func goroutines(dump []byte) string {
	const innermost = 3
	count := map[string]int{}
	for stack := range bytes.SplitSeq(dump, []byte("\n\n")) {
		state := waitingFor.FindSubmatch(stack)
		calls := ownFunction.FindAllSubmatch(stack, innermost)
		if state == nil || len(calls) == 0 {
			continue
		}
		line := "[" + string(state[1]) + "]"
		for _, call := range calls {
			line += " < " + string(call[1])
		}
		count[line]++
	}
	lines := slices.SortedFunc(maps.Keys(count), func(a, b string) int { return cmp.Or(count[b]-count[a], cmp.Compare(a, b)) })
	for i, line := range lines {
		lines[i] = fmt.Sprintf("%d × %s", count[line], line)
	}
	return strings.Join(lines, "\n")
}
