package fsck_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsck"
)

// randomFaults is the number of faults to create, one after the other. A run with 20,000 found nothing more.
const randomFaults = 400

// sabotage creates one fault and returns the paths, at least one of which a report must contain; none if the
// fault is impossible for this node.
type sabotage func(r *rand.Rand, w *world, h cas.Hash) (named []string)

// sabotages lists possible faults of a node's file. Damage to the timestamp isn't included, because no hash
// covers it.
var sabotages = map[string]sabotage{
	"bit":       contents(func(r *rand.Rand, d []byte) []byte { d[r.IntN(len(d)-timeBytes)] ^= 1 << r.IntN(8); return d }),
	"bits":      contents(manyBits),
	"cut":       contents(func(r *rand.Rand, d []byte) []byte { return d[:r.IntN(len(d))] }),
	"longer":    contents(func(r *rand.Rand, d []byte) []byte { return append(d, make([]byte, 1+r.IntN(5000))...) }),
	"zeros":     contents(func(_ *rand.Rand, d []byte) []byte { clear(d); return d }),
	"garbage":   contents(func(r *rand.Rand, d []byte) []byte { return randomBytes(r, len(d)) }),
	"hole":      contents(hole),
	"twice":     contents(func(_ *rand.Rand, d []byte) []byte { return append(d, d...) }),
	"lost":      func(_ *rand.Rand, w *world, h cas.Hash) []string { return needed(w, h, os.Remove(w.store.Path(h))) },
	"swapped":   swapFiles,
	"renamed":   rename,
	"misplaced": misplace,
	"flat":      duplicate(func(w *world, h cas.Hash) string { return filepath.Join(w.store.Dir(), string(h)+".bin") }),
	"nodes":     duplicate(func(w *world, h cas.Hash) string { return filepath.Join(w.store.Dir(), "nodes", string(h)+".bin") }),
	"directory": inPlace(func(path string) error { return os.Mkdir(path, 0o755) }),
	"link":      inPlace(func(path string) error { return os.Symlink(path+".away", path) }),
	"dangling":  inPlace(func(path string) error { return os.Symlink("nowhere", path) }),
	"denied":    deny,
}

// timeBytes is the number of bytes at the end of a file that contain the timestamp.
const timeBytes = 9

// contents modifies the content of a file.
func contents(change func(*rand.Rand, []byte) []byte) sabotage {
	return func(r *rand.Rand, w *world, h cas.Hash) []string {
		same := false
		w.change(h, func(old []byte) []byte {
			changed := change(r, bytes.Clone(old))
			same = bytes.Equal(old, changed)
			return changed
		})
		if same {
			return nil
		}
		return []string{w.store.Path(h)}
	}
}

func manyBits(r *rand.Rand, d []byte) []byte {
	for range 2 + r.IntN(20) {
		d[r.IntN(len(d)-timeBytes)] ^= 1 << r.IntN(8)
	}
	return d
}

// hole replaces a part with zeros, as after a power cut.
func hole(r *rand.Rand, d []byte) []byte {
	from := r.IntN(len(d) - timeBytes)
	clear(d[from : from+r.IntN(len(d)-timeBytes-from)])
	return d
}

func randomBytes(r *rand.Rand, n int) []byte {
	d := make([]byte, n)
	for i := range d {
		d[i] = byte(r.IntN(256))
	}
	return d
}

// needed returns a missing node, which is detected if something references it.
func needed(w *world, h cas.Hash, err error) []string {
	require.NoError(w, err)
	return []string{w.store.Path(h)}
}

// another returns a node other than h.
func another(r *rand.Rand, w *world, h cas.Hash) cas.Hash {
	all := w.all()
	for {
		if other := all[r.IntN(len(all))]; other != h {
			return other
		}
	}
}

func swapFiles(r *rand.Rand, w *world, h cas.Hash) []string {
	a, b := w.store.Path(h), w.store.Path(another(r, w, h))
	require.NoError(w, os.Rename(a, a+".x"))
	require.NoError(w, os.Rename(b, a))
	require.NoError(w, os.Rename(a+".x", b))
	return []string{a, b}
}

// rename gives a node the name of a node that doesn't exist.
func rename(_ *rand.Rand, w *world, h cas.Hash) []string {
	last := byte('0')
	if h[len(h)-1] == last {
		last = '1'
	}
	other := w.store.Path(h[:len(h)-1] + cas.Hash(last))
	require.NoError(w, os.Rename(w.store.Path(h), other))
	return []string{other}
}

func misplace(r *rand.Rand, w *world, h cas.Hash) []string {
	dir := filepath.Dir(w.store.Path(another(r, w, h)))
	to := filepath.Join(dir, string(h)+".bin")
	if to == w.store.Path(h) {
		return nil
	}
	require.NoError(w, os.Rename(w.store.Path(h), to))
	return []string{to}
}

// duplicate leaves a copy at the node's path in another layout.
func duplicate(at func(*world, cas.Hash) string) sabotage {
	return func(_ *rand.Rand, w *world, h cas.Hash) []string {
		data, err := os.ReadFile(w.store.Path(h))
		require.NoError(w, err)
		require.NoError(w, os.WriteFile(at(w, h), data, 0o444))
		return []string{at(w, h)}
	}
}

// inPlace moves a file away and puts something else in its place.
func inPlace(put func(path string) error) sabotage {
	return func(_ *rand.Rand, w *world, h cas.Hash) []string {
		path := w.store.Path(h)
		require.NoError(w, os.Rename(path, path+".away"))
		require.NoError(w, put(path))
		return []string{path}
	}
}

// deny removes read permission. It has no effect for users who can read the file anyway.
func deny(_ *rand.Rand, w *world, h cas.Hash) []string {
	path := w.store.Path(h)
	require.NoError(w, os.Chmod(path, 0))
	if _, err := os.ReadFile(path); err == nil {
		return nil
	}
	return []string{path}
}

// fsck reports any fault of any file in a store; --repair deletes nothing, and the original content can be
// restored.
func TestRandomFaults(t *testing.T) {
	t.Parallel()
	const seed = 20260604
	r := rand.New(rand.NewPCG(seed, seed))
	w := newWorld(t, 3)
	good := snapshot(t, w.store.Dir())
	hashes := w.all()
	found := map[string]int{}
	for i := range randomFaults {
		h := hashes[r.IntN(len(hashes))]
		for name, fault := range sabotages { // map order is another source of randomness
			named := fault(r, w, h)
			if len(named) > 0 {
				found[name]++
				requireFound(t, w, w.check(false), named, "fault %d, %s, in %s", i, name, h)
				if i%10 == 0 {
					requireNothingDeleted(t, w, name)
				}
			}
			restore(t, w.store.Dir(), good)
			break
		}
	}
	require.Empty(t, w.check(false).Faults, "what was put back is whole")
	require.Greater(t, len(found), len(sabotages)-3, "nearly all kinds were made: %v", found)
}

// requireFound checks that a fault has one of the paths, or the node of one.
func requireFound(t *testing.T, w *world, report fsck.Report, named []string, format string, args ...any) {
	t.Helper()
	for _, f := range report.Faults {
		if slices.Contains(named, f.Path) {
			return
		}
	}
	t.Fatalf("%s: not found; the report: %+v", fmt.Sprintf(format, args...), report.Faults)
}

// requireNothingDeleted repairs, and looks for the content of every file.
func requireNothingDeleted(t *testing.T, w *world, name string) {
	t.Helper()
	before := snapshot(t, w.store.Dir())
	w.check(true)
	after := map[string]bool{}
	for _, data := range snapshot(t, w.store.Dir()) {
		after[data] = true
	}
	for path, data := range before {
		require.True(t, after[data], "%s: what was in %s is gone", name, path)
	}
}

// snapshot returns the content of every file below a directory.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm() == 0 {
			require.NoError(t, os.Chmod(path, 0o444))
		}
		data, err := os.ReadFile(path)
		all[path] = string(data)
		return err
	}))
	return all
}

// restore restores the content of a directory.
func restore(t *testing.T, dir string, good map[string]string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if _, ok := good[path]; ok && e.Type().IsRegular() || e.IsDir() && filepath.Ext(path) == "" {
			return nil
		}
		if err := os.RemoveAll(path); err != nil || !e.IsDir() {
			return err
		}
		return fs.SkipDir
	}))
	now := snapshot(t, dir)
	for path, data := range good {
		if there, ok := now[path]; !ok || there != data {
			require.NoError(t, os.RemoveAll(path))
			require.NoError(t, os.WriteFile(path, []byte(data), 0o444))
		}
	}
}
