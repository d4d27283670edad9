package wire_test

import (
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote/wire"
)

// A stalled peer is reported after five seconds and disconnected after a minute, at any point. A slow or
// working one is neither.
func TestStalls(t *testing.T) {
	t.Parallel()
	const answer = `{"state":{"thread":"01ARZ3NDEKTSV4RRFFQ69G5FAA","head":"4EAEYQKFHTJ23","facts":{}}}`
	greeted := wire.Magic + frame('.', greeting)
	type says struct {
		after time.Duration
		text  string
	}
	every := func(pause time.Duration, text string) (all []says) {
		for _, b := range []byte(text) {
			all = append(all, says{pause, string(b)})
		}
		return all
	}
	at := []says{{0, wire.Magic}}
	for range 30 {
		at = append(at, says{4 * time.Second, frame('k', "")})
	}
	for name, c := range map[string]struct {
		says    []says
		stalls  bool
		seconds int // until the end
	}{
		"from the beginning":   {nil, true, 60},
		"before the greeting":  {[]says{{0, wire.Magic}}, true, 60},
		"within a frame":       {append([]says{{0, greeted}}, says{3 * time.Second, frame('.', answer)[:20]}), true, 63},
		"a byte each 4 s":      {append([]says{{0, greeted}}, every(4*time.Second, frame('.', answer))...), false, 4 * len(frame('.', answer))},
		"a byte each 50 s":     {append([]says{{0, greeted}}, every(50*time.Second, frame('.', answer))...), true, 50 * len(frame('.', answer))},
		"at work for 120 s":    {append(at, says{0, frame('.', greeting)}, says{0, frame('.', answer)}), false, 120},
		"it answers, and ends": {[]says{{0, greeted}, {time.Second, frame('.', answer)}}, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				theirs, out := io.Pipe()
				in, answers := io.Pipe()
				go func() { _, _ = io.Copy(io.Discard, theirs) }()
				go func() {
					for _, s := range c.says {
						time.Sleep(s.after) // the bubble's time; no real wait
						if _, err := io.WriteString(answers, s.text); err != nil {
							return
						}
					}
				}()
				var reports atomic.Int32
				began := time.Now()
				client, err := wire.Connect(t.Context(), in, out, func() error {
					_ = out.Close()
					return in.Close()
				}, wire.Options{Hash: cas.XXH3, Stalled: func() { reports.Add(1) }})
				if err == nil {
					_, err = client.Thread(t.Context(), "01ARZ3NDEKTSV4RRFFQ69G5FAA")
				}
				require.Equal(t, c.seconds, int(time.Since(began).Seconds()))
				require.Equal(t, c.stalls, reports.Load() == 1)
				if strings.Contains(name, "each 50") || !c.stalls {
					require.NoError(t, err)
				} else {
					require.ErrorAs(t, err, new(*wire.TimeoutError))
				}
				time.Sleep(time.Hour) // no timeout between two requests
				require.Equal(t, c.stalls, reports.Load() == 1)
				if client != nil {
					require.NoError(t, client.Close())
				}
			})
		})
	}
}

// Slow uploads aren't cut off.
func TestSlowUploads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		theirs, out := io.Pipe()
		in, answers := io.Pipe()
		asked := make(chan bool)
		go func() {
			defer close(asked)
			for block := make([]byte, 4<<10); ; time.Sleep(20 * time.Second) {
				n, err := theirs.Read(block)
				if err != nil {
					return
				}
				if strings.HasSuffix(string(block[:n]), frame('.', "{}")) {
					asked <- true
				}
			}
		}()
		go func() {
			_, _ = io.WriteString(answers, wire.Magic)
			for _, answer := range []string{greeting, `{"hashes":[]}`} {
				<-asked
				_, _ = io.WriteString(answers, frame('.', answer))
			}
		}()
		client, err := wire.Connect(t.Context(), in, out, func() error {
			_ = out.Close()
			return in.Close()
		}, wire.Options{Hash: cas.XXH3})
		require.NoError(t, err)
		began := time.Now()
		_, err = client.Missing(t.Context(), slices.Repeat([]protocol.Hash{"4EAEYQKFHTJ23"}, 50_000))
		require.NoError(t, err)
		require.Greater(t, time.Since(began), time.Hour/2)
		require.NoError(t, client.Close())
		time.Sleep(time.Hour) // the far end notices
	})
}
