package remotes_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/engine/remotes"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote/remotetest"
)

// A redaction at the remote is carried out later if it can't be now, because something is unreadable.
func TestRedactionIsNotForgotten(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for name, damaged := range map[string]func(head, secret cas.Hash) cas.Hash{
		"the node":         func(_, secret cas.Hash) cas.Hash { return secret },
		"a thread's nodes": func(head, _ cas.Hash) cas.Hash { return head },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			there := remotetest.NewDirectory(t, cas.XXH3, time.Now)
			ann, bob := newSide(t, there), newSide(t, there)
			id := ann.start()
			step, err := cas.Read[protocol.Step](ctx, ann.Store, ann.step(id, 1))
			require.NoError(t, err)
			secret := *step.Prompt
			_, err = ann.push(id)
			require.NoError(t, err)
			_, err = bob.pull(id)
			require.NoError(t, err)
			require.NoError(t, there.Upkeep(t).Redact(id, secret, "a key"))

			link := func() *remotes.Link {
				return &remotes.Link{Name: "team", Address: "team", Remote: there, Engine: bob.Engine, Store: bob.Store, Heads: bob.Heads,
					Holder: "bob", Warn: bob.Warn, Trusted: true}
			}
			require.NoError(t, os.WriteFile(filepath.Join(bob.dir, "redactions.json"), []byte("null"), 0o600))
			record := castest.FindRecord(t, filepath.Join(bob.dir, "cas"), damaged(bob.head(id), secret))
			record.Flip()
			_, err = link().Pull(ctx, []string{"01ARZ3NDEKTSV4RRFFQ69G5FAA"}, remotes.PullOptions{})
			require.ErrorIs(t, err, &protocol.Error{Code: protocol.CodeNotFound})
			record.Flip()
			_, err = bob.Store.Get(ctx, secret)
			require.NoError(t, err)
			_, err = link().Pull(ctx, []string{id}, remotes.PullOptions{})
			require.NoError(t, err)
			_, err = bob.Store.Get(ctx, secret)
			_, redacted := cas.AsRedacted(err)
			require.True(t, redacted, err)
		})
	}
}
