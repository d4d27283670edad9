//go:build measure

package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
)

// measureVar is the number of threads to measure the pages with. Making 100,000 takes minutes.
const measureVar = "UWF_WEB_MEASURE"

// TestMeasured logs how long pages take, first and again, with many threads whose heads all differ, and the
// processor time, which depends less on what else the machine does. It measures and asserts nothing, so only
// go test -tags measure has it.
func TestMeasured(t *testing.T) {
	many, err := strconv.Atoi(os.Getenv(measureVar))
	require.NoError(t, err, "set %s to a number of threads", measureVar)
	s := newSite(t, true)
	id := s.start("x")
	waits := s.start("waits")
	s.step(waits, "done", "x")
	head, err := s.engine.Reader.Head(t.Context(), id)
	require.NoError(t, err)
	start, err := cas.Read[protocol.Start](t.Context(), s.engine.Reader.Store, head)
	require.NoError(t, err)
	path := filepath.Join(s.engine.Reader.Dirs.Home, "threads.yaml")
	own, err := os.ReadFile(path)
	require.NoError(t, err)
	_, line, _ := strings.Cut(string(own), id)
	line, _, _ = strings.Cut(line, "\n")
	require.Contains(t, line, string(head))
	var list strings.Builder
	b := cas.NewBatch(s.engine.Reader.Store, time.Now)
	for i := range many {
		start.Prompt = fmt.Sprintf("Task %d of customer %d", i, i%97)
		h, err := b.Add(t.Context(), start)
		require.NoError(t, err)
		fmt.Fprintf(&list, "01ARZ3NDEKTSV4RRFF%08d%s\n", i, strings.ReplaceAll(line, string(head), string(h)))
	}
	require.NoError(t, b.Commit(t.Context()))
	require.NoError(t, os.WriteFile(path, append([]byte(list.String()), own...), 0o600))
	for _, page := range []string{"", "threads", "threads?q=customer+42", "threads?sort=oldest", "stats?since=", "thread/" + waits} {
		var took []time.Duration
		size := 0
		used, first := processor(t), time.Duration(0)
		for i := range 12 {
			if i == 1 {
				first, used = processor(t)-used, processor(t)
			}
			began := time.Now()
			size = len(s.get(page, http.StatusOK))
			took = append(took, time.Since(began))
		}
		used = (processor(t) - used) / 11
		once := took[0]
		slices.Sort(took)
		t.Logf("%7d threads  %-22.22s first %6d ms (processor %5d ms), then median %4d ms, best %4d ms, processor %4d ms, %4d kB",
			many, "/"+page, once.Milliseconds(), first.Milliseconds(), took[len(took)/2].Milliseconds(), took[0].Milliseconds(), used.Milliseconds(), size>>10)
	}
}

// processor returns the processor time that this process, client and server, has used.
func processor(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
