package cliagent

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/cliagent/output"
)

// flood is a stream of a given size: a text in small pieces, tool results, and unknown lines.
type flood struct {
	left, n int
	rest    []byte
}

func (f *flood) Read(b []byte) (int, error) {
	if len(f.rest) == 0 {
		if f.left <= 0 {
			return 0, io.EOF
		}
		f.n++
		switch kind := f.n % 5000; {
		case kind == 0:
			f.rest = []byte("R " + strings.Repeat("z", 900) + "\n")
		case kind%3 == 0:
			f.rest = []byte(strings.Repeat("noise ", 30) + "\n")
		default:
			f.rest = fmt.Appendf(nil, "D %d %s\n", f.n, strings.Repeat("y", 200))
		}
	}
	n := copy(b, f.rest)
	f.rest, f.left = f.rest[n:], f.left-n
	return n, nil
}

// floodDecoder checks the memory in use.
type floodDecoder struct {
	t     *testing.T
	lines int
	base  uint64
}

func (d *floodDecoder) Line(line []byte) ([]Event, bool) {
	if d.lines++; d.lines%50_000 == 0 {
		require.Less(d.t, inUse(), d.base+(48<<20), "after %d lines", d.lines)
	}
	kind, text, _ := bytes.Cut(line, []byte(" "))
	switch string(kind) {
	case "D":
		return []Event{{Kind: Delta, Text: string(text)}}, true
	case "R":
		return []Event{{Kind: Returned, Text: string(text)}}, true
	}
	return nil, false
}

func (d *floodDecoder) End(Exit) Outcome { return Outcome{Kind: OK} }

func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A hundred megabytes pass through without being kept in memory.
func TestMemoryIsFlat(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	turns := 0
	c := &call{cancel: cancel, watch: newWatch(Timeouts{}.withDefaults(), cancel), onSession: func(string) error { return nil }}
	c.record.put = func(context.Context, protocol.Turn) error { turns++; return nil }
	h := &Host{outer: ctx}
	h.current(c)
	d := &floodDecoder{t: t, base: inUse()}
	r := &lineReader{decoder: d, host: h, noise: &output.Tail{}}
	read, write, err := os.Pipe()
	require.NoError(t, err)
	go func() {
		_, _ = io.Copy(write, &flood{left: 100 << 20})
		_ = write.Close()
	}()
	in := output.New(read, io.Discard, nil)
	r.read(ctx, in.Line)
	require.NoError(t, c.close(ctx))
	require.Greater(t, d.lines, 300_000)
	require.Greater(t, turns, 100)
}
