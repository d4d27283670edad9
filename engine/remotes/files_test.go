package remotes_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"iter"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/remotes"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/remotetest"
	"github.com/united-workforce/uwf/util/gitobject"
	"github.com/united-workforce/uwf/util/prosetest"
)

// object returns a git object, valid or not.
func object(kind byte, content string) remote.Object {
	return remote.Object{ID: gitobject.ID(kind, []byte(content), "sha1"), Kind: kind, Content: []byte(content)}
}

// tree returns a tree object with alternating entries "<mode> <name>" and objects, in that order.
func tree(t *testing.T, entries ...any) remote.Object {
	t.Helper()
	var b strings.Builder
	for i := 0; i < len(entries); i += 2 {
		o := entries[i+1].(remote.Object)
		sum, err := hex.DecodeString(strings.TrimPrefix(string(o.ID), "sha1:"))
		require.NoError(t, err)
		fmt.Fprintf(&b, "%s\x00%s", entries[i], sum)
	}
	return object(gitobject.Directory, b.String())
}

// withFiles returns a remote with a thread whose last step refers to files, and with the objects.
func withFiles(t *testing.T, root remote.Object, objects ...remote.Object) (remotetest.Directory, *side, string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is needed")
	}
	r := remotetest.NewDirectory(t, cas.XXH3, time.Now)
	require.NoError(t, r.PutObjects(t.Context(), append(objects, root)))
	ann := newSide(t, r)
	id := ann.start()
	ann.files = &protocol.Files{Tree: root.ID}
	ann.step(id, 1)
	_, err := ann.push(id)
	require.NoError(t, err)
	return r, ann, id
}

// Files are pulled with their thread: all objects are stored, and git accepts them.
func TestFilesCome(t *testing.T) {
	t.Parallel()
	blob := object(gitobject.File, "hello\n")
	sub := tree(t, "100644 b", blob)
	r, ann, id := withFiles(t, tree(t, "100644 a", blob, "40000 d", sub, "160000 module", object(gitobject.File, "elsewhere")), blob, sub)
	bob := newSide(t, r)
	done, err := bob.Pull(t.Context(), []string{id}, remotes.PullOptions{})
	require.NoError(t, err)
	require.Equal(t, 3, done.Objects)
	out, err := exec.Command("git", "--git-dir", filepath.Join(bob.dir, "git", "imported-sha1"), "fsck", "--strict", "--full").CombinedOutput()
	require.NoError(t, err, "%s", out)

	// For the next step, only new objects are pulled; existing ones are sent nowhere.
	next := tree(t, "100644 a", blob, "40000 d", sub, "100644 e", object(gitobject.File, "new\n"))
	require.NoError(t, r.PutObjects(t.Context(), []remote.Object{object(gitobject.File, "new\n"), next}))
	ann.files = &protocol.Files{Tree: next.ID}
	ann.step(id, 2)
	_, err = ann.push(id)
	require.NoError(t, err)
	done, err = bob.Pull(t.Context(), []string{id}, remotes.PullOptions{})
	require.NoError(t, err)
	require.Equal(t, 2, done.Objects)

	// They can be pushed to a remote that has none of them.
	other := remotetest.NewDirectory(t, cas.XXH3, time.Now)
	bob.Link.Name, bob.Remote = "other", other
	sent, err := bob.Push(t.Context(), []string{id}, remotes.PushOptions{})
	require.NoError(t, err)
	require.Equal(t, 5, sent[0].Objects)
	eve := newSide(t, other)
	done, err = eve.Pull(t.Context(), []string{id}, remotes.PullOptions{})
	require.NoError(t, err)
	require.Equal(t, 5, done.Objects)
	require.Empty(t, eve.said.String())
}

// Hostile files are refused with a reason, and nothing of their thread is stored.
func TestHostileFiles(t *testing.T) {
	t.Parallel()
	blob := object(gitobject.File, "x")
	link := object(gitobject.File, "../../outside")
	bomb := blob
	levels := []remote.Object{blob}
	for level := range 9 {
		var entries []any
		for n := range 10 {
			mode := "40000"
			if level == 0 {
				mode = "100644"
			}
			entries = append(entries, fmt.Sprintf("%s %d", mode, n), bomb)
		}
		bomb = tree(t, entries...)
		levels = append(levels, bomb)
	}
	deep := tree(t, "100644 a", blob)
	deeper := []remote.Object{blob, deep}
	for range 1100 {
		deep = tree(t, "40000 d", deep)
		deeper = append(deeper, deep)
	}
	for name, x := range map[string]struct {
		root    remote.Object
		objects []remote.Object
	}{
		"a git directory":     {tree(t, "40000 .git", tree(t, "100644 config", blob)), []remote.Object{tree(t, "100644 config", blob), blob}},
		"one in disguise":     {tree(t, "40000 GIT~1", tree(t, "100644 config", blob)), []remote.Object{tree(t, "100644 config", blob), blob}},
		"up":                  {tree(t, "100644 ..", blob), []remote.Object{blob}},
		"a path":              {tree(t, "100644 a/b", blob), []remote.Object{blob}},
		"out of order":        {tree(t, "100644 b", blob, "100644 a", blob), []remote.Object{blob}},
		"twice":               {tree(t, "100644 a", blob, "100644 a", blob), []remote.Object{blob}},
		"a device":            {tree(t, "20666 a", blob), []remote.Object{blob}},
		"no tree":             {object(gitobject.Directory, "100644 a\x00short"), nil},
		"a link out":          {tree(t, "120000 a", link), []remote.Object{link}},
		"a bomb":              {bomb, levels[:len(levels)-1]},
		"a hole":              {deep, deeper[:len(deeper)-1]},
		"a file as directory": {tree(t, "40000 a", blob), []remote.Object{blob}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _, id := withFiles(t, x.root, x.objects...)
			bob := newSide(t, r)
			_, err := bob.pull(id)
			prosetest.Error(t, err)
			bob.refused(id)
		})
	}
}

// refused checks that a pull has stored nothing.
func (s *side) refused(id string) {
	s.t.Helper()
	_, err := s.Heads.Head(context.Background(), id)
	require.ErrorIs(s.t, err, heads.ErrNoThread)
	left, err := filepath.Glob(filepath.Join(s.dir, ".pull-*"))
	require.NoError(s.t, err)
	require.Empty(s.t, left)
	packs, err := filepath.Glob(filepath.Join(s.dir, "git", "*", "objects", "pack", "*"))
	require.NoError(s.t, err)
	require.Empty(s.t, packs)
}

// liar sends objects other than requested.
type liar struct {
	remote.Remote
	object func(remote.Object) (remote.Object, error)
	asked  [][]protocol.Tree
}

func (l *liar) GetObjects(ctx context.Context, ids []protocol.Tree) iter.Seq2[remote.Object, error] {
	return func(yield func(remote.Object, error) bool) {
		l.asked = append(l.asked, slices.Clone(ids))
		for o, err := range l.Remote.GetObjects(ctx, ids) {
			if err == nil {
				o, err = l.object(o)
			}
			if !yield(o, err) || err != nil {
				return
			}
		}
	}
}

func TestLyingAboutFiles(t *testing.T) {
	t.Parallel()
	blob := object(gitobject.File, "x")
	root := tree(t, "100644 a", blob)
	for name, lie := range map[string]func(remote.Object) remote.Object{
		"another content": func(o remote.Object) remote.Object { o.Content = append(bytes.Clone(o.Content), 'y'); return o },
		"another object":  func(o remote.Object) remote.Object { return object(gitobject.File, "z") },
		"another kind":    func(o remote.Object) remote.Object { o.Kind = 'x'; return o },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _, id := withFiles(t, root, blob)
			bob := newSide(t, &liar{Remote: r, object: func(o remote.Object) (remote.Object, error) { return lie(o), nil }})
			_, err := bob.pull(id)
			coded(t, err, protocol.CodeCorrupt)
			bob.refused(id)
		})
	}
}

// A pull interrupted while fetching files stores nothing, and the next one all. Missing files don't block the
// steps.
func TestFilesAreCutOff(t *testing.T) {
	t.Parallel()
	blob := object(gitobject.File, "x")
	r, _, id := withFiles(t, tree(t, "100644 a", blob), blob)
	cut := &liar{Remote: r, object: func(o remote.Object) (remote.Object, error) {
		if o.Kind == gitobject.File {
			return o, context.DeadlineExceeded
		}
		return o, nil
	}}
	bob := newSide(t, cut)
	_, err := bob.pull(id)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	bob.refused(id)
	cut.object = func(o remote.Object) (remote.Object, error) { return o, nil }
	done, err := bob.Pull(t.Context(), []string{id}, remotes.PullOptions{})
	require.NoError(t, err)
	require.Equal(t, 2, done.Objects)

	torn, _, id := withFiles(t, tree(t, "100644 a", object(gitobject.File, "nowhere")))
	eve := newSide(t, torn)
	got, err := eve.Pull(t.Context(), []string{id}, remotes.PullOptions{})
	require.NoError(t, err)
	require.Zero(t, got.Objects)
	require.Contains(t, eve.said.String(), "not pulled from team")
	require.NotEmpty(t, eve.head(id))
}
