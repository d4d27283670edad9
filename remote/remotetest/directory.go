package remotetest

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/prune"
	"github.com/united-workforce/uwf/cas/redact"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/storeremote"
	"github.com/united-workforce/uwf/util/durable"
)

// Directory is a remote in a temporary directory, for tests of what uses remotes.
type Directory struct {
	*storeremote.Remote
	Path string

	now func() time.Time
}

// NewDirectory returns an empty remote. now is the clock for its leases.
func NewDirectory(t testing.TB, a cas.Algorithm, now func() time.Time) Directory {
	t.Helper()
	path := filepath.Join(t.TempDir(), "team")
	r, err := storeremote.Open(t.Context(), path, storeremote.Options{Hash: a, Program: "test", Now: now})
	require.NoError(t, err)
	return Directory{r, path, now}
}

// Store opens the store of the remote.
func (d Directory) Store(t testing.TB) *fsstore.Store {
	t.Helper()
	s, err := fsstore.Open(t.Context(), filepath.Join(d.Path, "cas"), fsstore.Options{})
	require.NoError(t, err)
	return s
}

// Upkeep changes the remote as its owner does.
func (d Directory) Upkeep(t testing.TB) Upkeep {
	index := fileheads.Open(d.Path, durable.OS())
	return Upkeep{
		Remove: func(thread string) error {
			_, err := prune.Run(t.Context(), index, prune.Options{Home: d.Path, Threads: []string{thread}, Now: d.now()})
			return err
		},
		Redact: func(thread string, h cas.Hash, reason string) error {
			_, err := redact.Node(t.Context(), d.Store(t), index, thread, h, redact.Options{Reason: reason, Now: d.now})
			return err
		},
	}
}

// Open opens the directory again, as a new process would.
func (d Directory) Open(a cas.Algorithm) Open {
	return func(t testing.TB) remote.Remote {
		r, err := storeremote.Open(t.Context(), d.Path, storeremote.Options{Hash: a, Program: "test", Now: d.now})
		require.NoError(t, err)
		return r
	}
}
