package gc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// surveyed is a collection between survey and removal: changes now simulate a thread at the worst moment.
type surveyed struct {
	*testing.T
	home  string
	store *fsstore.Store
	batch *cas.Batch
}

func (s *surveyed) put(p protocol.Payload) cas.Hash {
	h, err := s.batch.Add(context.Background(), p)
	require.NoError(s, err)
	require.NoError(s, s.batch.Put(context.Background()))
	return h
}

// Nodes that become needed between the survey and the sweep survive, with everything they reference.
func TestNeededSinceTheSurvey(t *testing.T) {
	t.Parallel()
	type node struct{ text, turn, detail cas.Hash }
	for name, test := range map[string]struct {
		meanwhile func(s *surveyed, old node)
		stay      func(old node) []cas.Hash
	}{
		"nothing happens": {
			func(*surveyed, node) {},
			func(node) []cas.Hash { return nil },
		},
		"put again": {
			func(s *surveyed, _ node) {
				s.batch = cas.NewBatch(s.store, time.Now)
				s.put(protocol.Text("old"))
			},
			func(old node) []cas.Hash { return []cas.Hash{old.text} },
		},
		"registered": {
			func(s *surveyed, old node) { s.register(old.detail) },
			func(old node) []cas.Hash { return []cas.Hash{old.turn, old.detail} },
		},
		"a new node refers to an old one": {
			func(s *surveyed, old node) {
				s.batch = cas.NewBatch(s.store, time.Now)
				s.put(protocol.Detail{SessionID: "new", Capture: protocol.CaptureTurns, Turns: []cas.Hash{old.turn}})
			},
			func(old node) []cas.Hash { return []cas.Hash{old.turn} },
		},
	} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", late ", late), func(t *testing.T) {
				t.Parallel()
				s := newSurveyed(t)
				var old node
				old.text = s.put(protocol.Text("old"))
				old.turn = s.put(protocol.Turn{Role: protocol.TurnAssistant, Content: "old", AtMs: 1})
				old.detail = s.put(protocol.Detail{SessionID: "s", Capture: protocol.CaptureTurns, Turns: []cas.Hash{old.turn}})
				all := []cas.Hash{old.text, old.turn, old.detail}
				later := func() time.Time { return time.Now().Add(2 * time.Hour) }
				c := newCollection(s.store, Options{Homes: []string{s.home}, Grace: time.Hour, Now: later})
				require.NoError(t, c.findCutoff())
				var err error
				c.compaction, err = s.store.Compact(t.Context(), c.cutoff, false)
				require.NoError(t, err)
				require.NoError(t, c.survey(t.Context()))
				if late {
					c.compaction = &interrupted{c.compaction, func() { test.meanwhile(s, old) }}
				} else {
					test.meanwhile(s, old)
				}
				require.NoError(t, c.sweep(t.Context()))
				require.NoError(t, c.compaction.Release())

				var stayed []cas.Hash
				for _, h := range all {
					ok, err := s.store.Has(t.Context(), h)
					require.NoError(t, err)
					if ok {
						stayed = append(stayed, h)
					}
				}
				require.Equal(t, test.stay(old), stayed)
			})
		}
	}
}

// What hasn't changed isn't read again while writers wait: a run without an agent, and the history.
func TestRecheck(t *testing.T) {
	t.Parallel()
	s := newSurveyed(t)
	run := filepath.Join(s.home, "runs", "01ARZ3NDEKTSV4RRFFQ69G5FAV")
	require.NoError(t, os.MkdirAll(run, 0o755))
	file := func(name string) string { return filepath.Join(run, name) }
	c := newCollection(s.store, Options{Homes: []string{s.home}, Damaged: true, Now: time.Now})
	long := time.Now().Add(-time.Hour)
	next := 0
	// announce writes a new hash to a file, which becomes as old as its directory, and reports whether a recheck sees it.
	announce := func(name string) bool {
		next++
		h := protocol.HashOf(uint64(next))
		f, err := os.OpenFile(file(name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		require.NoError(t, err)
		_, err = fmt.Fprintln(f, h)
		require.NoError(t, errors.Join(err, f.Close(), os.Chtimes(file(name), long, long), os.Chtimes(run, long, long)))
		require.NoError(t, c.findCutoff())
		require.NoError(t, c.markRoots(t.Context()))
		return c.marks.marked(h)
	}
	require.NoError(t, os.WriteFile(file("agent.lock"), nil, 0o600))
	agent, err := durable.TryLock(file("agent.lock"))
	require.NoError(t, err)
	require.True(t, announce("stdout"))
	require.True(t, announce("stdout"), "the agent writes again")
	require.NoError(t, agent.Unlock())
	require.True(t, announce("stdout"), "it has ended since")
	require.False(t, announce("stdout"), "nobody writes")
	require.NoError(t, durable.Replace(durable.OS(), file("run.json"), []byte("{}"), 0o600))
	long = time.Now()
	require.True(t, announce("stdout"), "a run has begun")
}

// interrupted calls a function when the pack is written, just before writers are stopped.
type interrupted struct {
	cas.Compaction
	meanwhile func()
}

func (i *interrupted) Finish(ctx context.Context, recheck func() error, keep func(cas.Hash) bool) error {
	i.meanwhile()
	return i.Compaction.Finish(ctx, recheck, keep)
}

// The collector waits for holders of the store's lock.
func TestHold(t *testing.T) {
	t.Parallel()
	s := newSurveyed(t)
	old := s.put(protocol.Text("old"))
	release, err := cas.LockShared(t.Context(), s.store)
	require.NoError(t, err)
	soon, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	options := Options{Homes: []string{s.home}, Now: func() time.Time { return time.Now().Add(time.Hour) }}
	_, err = Run(soon, s.store, options)
	require.ErrorIs(t, err, context.DeadlineExceeded, "it waits for who holds the store")
	_, err = s.store.Get(t.Context(), old)
	require.NoError(t, err)
	require.NoError(t, release())
	_, err = Run(t.Context(), s.store, options)
	require.NoError(t, err)
	_, err = s.store.Get(t.Context(), old)
	require.ErrorIs(t, err, cas.ErrNotFound)
}

func newSurveyed(t *testing.T) *surveyed {
	home := t.TempDir()
	store, err := fsstore.Open(t.Context(), filepath.Join(home, "cas"), fsstore.Options{Home: home})
	require.NoError(t, err)
	return &surveyed{T: t, home: home, store: store, batch: cas.NewBatch(store, time.Now)}
}

func (s *surveyed) register(h cas.Hash) {
	require.NoError(s, fileheads.Open(s.home, durable.OS()).Register(context.Background(), "w", h))
}
