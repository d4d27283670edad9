package storeremote_test

import (
	"context"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/remotetest"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/gitobject"
)

const redactedThread, otherThread = "01ARZ3NDEKTSV4RRFFQ69G5FAA", "01ARZ3NDEKTSV4RRFFQ69G5FAB"

func secretFile() remote.Object {
	return remote.Object{ID: gitobject.ID(gitobject.File, []byte("secret"), "sha1"), Kind: gitobject.File, Content: []byte("secret")}
}

// directoryOf returns a directory with one file.
func directoryOf(t *testing.T, name string, file remote.Object) remote.Object {
	t.Helper()
	sum, err := hex.DecodeString(gitobject.Name(file.ID))
	require.NoError(t, err)
	content := append([]byte("100644 "+name+"\x00"), sum...)
	return remote.Object{ID: gitobject.ID(gitobject.Directory, content, "sha1"), Kind: gitobject.Directory, Content: content}
}

// withSnapshots returns a remote with two threads that have the same file under different names.
func withSnapshots(t *testing.T) (r remotetest.Directory, here, there remote.Object) {
	t.Helper()
	r = remotetest.NewDirectory(t, cas.XXH3, time.Now)
	here, there = directoryOf(t, "key", secretFile()), directoryOf(t, "copy", secretFile())
	require.NoError(t, r.PutObjects(t.Context(), []remote.Object{secretFile(), here, there}))
	c := remotetest.NewChain(t, cas.XXH3, "p", 1)
	c.Push(r, c.Head())
	for thread, tree := range map[string]protocol.Tree{redactedThread: here.ID, otherThread: there.ID} {
		facts := heads.Facts{Repository: &heads.Repository{Base: gitobject.Name(tree), Tree: tree}}
		require.NoError(t, r.Swap(t.Context(), remote.Swap{Thread: thread, Head: c.Head(), Facts: facts}))
	}
	return r, here, there
}

func objectPath(r remotetest.Directory, id protocol.Tree) string {
	name := gitobject.Name(id)
	return filepath.Join(r.Path, "objects", "sha1", name[:2], name[2:])
}

// A directory that cannot be read may contain the file, so nothing is removed.
func TestRedactionReadsEverything(t *testing.T) {
	t.Parallel()
	r, here, there := withSnapshots(t)
	for _, id := range []protocol.Tree{there.ID, here.ID} {
		path := objectPath(r, id)
		require.NoError(t, os.Rename(path, path+".moved"))
		require.NoError(t, os.Symlink(path, path))
		_, err := r.Redact(t.Context(), redactedThread, "key", false)
		require.Error(t, err)
		require.FileExists(t, objectPath(r, secretFile().ID))
		require.NoError(t, os.Rename(path+".moved", path))
	}
	done, err := r.Redact(t.Context(), redactedThread, "key", false)
	require.NoError(t, err)
	require.Len(t, done.Remains, 1)
	require.FileExists(t, objectPath(r, secretFile().ID))
}

// A client may learn that a file is missing just before its redaction. It must not store the file afterwards.
func TestRedactionExcludesPuts(t *testing.T) {
	t.Parallel()
	r := remotetest.NewDirectory(t, cas.XXH3, time.Now)
	require.NoError(t, r.PutObjects(t.Context(), []remote.Object{{
		ID: gitobject.ID(gitobject.File, nil, "sha1"), Kind: gitobject.File}}))
	redaction, err := durable.Lock(t.Context(), filepath.Join(r.Path, "locks", "remote-put.lock"))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, r.PutObjects(ctx, []remote.Object{secretFile()}), context.DeadlineExceeded)
	require.NoError(t, redaction.Unlock())
	require.NoFileExists(t, objectPath(r, secretFile().ID))
}
