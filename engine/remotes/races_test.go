package remotes_test

import (
	"context"
	"errors"
	"flag"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/remotes"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote/storeremote"
)

var races = flag.Int("races", 25, "how often two homes go on with one thread at once")

// Two homes repeatedly continue one thread at once, with a step under the lease or with one that they push.
// There is one chain: it has all acknowledged steps, and no others.
func TestRaces(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"one clock": 0, "clocks an hour apart": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			race(t, ahead)
		})
	}
}

// race runs one race. The clock of the second home's helper is ahead.
func race(t *testing.T, ahead time.Duration) {
	team := filepath.Join(t.TempDir(), "team")
	var sides []*side
	for i := range time.Duration(2) {
		now := func() time.Time { return time.Now().Add(i * ahead) }
		r, err := storeremote.Open(t.Context(), team, storeremote.Options{Hash: cas.XXH3, Program: "test", Now: now})
		require.NoError(t, err)
		sides = append(sides, newSide(t, r))
	}
	id := sides[0].start()
	_, err := sides[0].push(id)
	require.NoError(t, err)
	_, err = sides[1].pull(id)
	require.NoError(t, err)

	var mu sync.Mutex
	made, counted := map[cas.Hash]bool{}, map[cas.Hash]bool{}
	note := func(list map[cas.Hash]bool, h cas.Hash) {
		mu.Lock()
		defer mu.Unlock()
		list[h] = true
	}
	words := map[protocol.Code]int{}
	for round := range *races {
		var both sync.WaitGroup
		for i, s := range sides {
			both.Go(func() {
				var last cas.Hash
				next := func(at cas.Hash) cas.Hash {
					last = s.made(at, 2*round+i)
					note(made, last)
					return last
				}
				var err error
				if (round/(i+1))%2 == 0 {
					err = s.With(t.Context(), id, "", remotes.Options{}, func(ctx context.Context, e *engine.Engine) error {
						at := s.head(id)
						return e.Reader.Heads.Move(ctx, id, at, next(at))
					})
				} else {
					at := s.head(id)
					require.NoError(t, s.Heads.Move(t.Context(), id, at, next(at)))
					_, err = s.push(id)
				}
				if err == nil {
					note(counted, last)
					return
				}
				var coded *protocol.Error
				if !errors.As(err, &coded) {
					t.Errorf("%v", err)
					return
				}
				mu.Lock()
				words[coded.Code]++
				mu.Unlock()
				if coded.Code == protocol.CodeDiverged {
					_, err = s.Pull(t.Context(), []string{id}, remotes.PullOptions{Discard: true})
					if err != nil && !errors.As(err, &coded) {
						t.Errorf("%v", err)
					}
				}
			})
		}
		both.Wait()
	}
	for _, s := range sides {
		_, err := s.Pull(t.Context(), []string{id}, remotes.PullOptions{Discard: true})
		require.NoError(t, err)
	}
	at, err := sides[0].Remote.Thread(t.Context(), id)
	require.NoError(t, err)
	chain := map[cas.Hash]bool{}
	for _, s := range sides {
		require.Equal(t, at.Head, s.head(id))
		open, err := thread.Open(t.Context(), s.Store, at.Head)
		require.NoError(t, err)
		for step, err := range open.Steps(t.Context()) {
			require.NoError(t, err)
			chain[step.Hash] = true
			require.True(t, made[step.Hash], "nobody has made step %s", step.Hash)
		}
	}
	for h := range counted {
		require.True(t, chain[h], "step %s was acknowledged, and is not in the chain", h)
	}
	require.NotEmpty(t, counted)
	for code := range words {
		require.Contains(t, []protocol.Code{protocol.CodeLocked, protocol.CodeDiverged, protocol.CodeHeadMoved}, code)
	}
	t.Logf("%d rounds: %d steps made, %d acknowledged, %d in the chain; refused: %v", *races, len(made), len(counted), len(chain), words)
}
