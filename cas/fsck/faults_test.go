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
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/fsck"
	"github.com/united-workforce/uwf/cas/fsstore"
)

// randomFaults is the number of faults to create, one after the other. A run with 20,000 found nothing more.
const randomFaults = 400

// sabotage creates one fault and returns the nodes, and a report must contain at least one; none if the
// fault is impossible for this node.
type sabotage func(r *rand.Rand, w *world, h cas.Hash) (named []cas.Hash)

// sabotages lists possible faults of a node's record. Damage to the timestamp isn't included, because no hash
// covers it.
var sabotages = map[string]sabotage{
	"bit":     contents(func(r *rand.Rand, d []byte) []byte { d[r.IntN(len(d)-timeBytes)] ^= 1 << r.IntN(8); return d }),
	"bits":    contents(manyBits),
	"cut":     contents(func(r *rand.Rand, d []byte) []byte { return d[:r.IntN(len(d))] }),
	"longer":  contents(func(r *rand.Rand, d []byte) []byte { return append(d, make([]byte, 1+r.IntN(5000))...) }),
	"zeros":   contents(func(_ *rand.Rand, d []byte) []byte { clear(d); return d }),
	"garbage": contents(func(r *rand.Rand, d []byte) []byte { return randomBytes(r, len(d)) }),
	"hole":    contents(hole),
	"twice":   contents(func(_ *rand.Rand, d []byte) []byte { return append(d, d...) }),
	"lost":    func(_ *rand.Rand, w *world, h cas.Hash) []cas.Hash { w.lose(h); return []cas.Hash{h} },
	"swapped": swap,
}

// timeBytes is the number of bytes at the end of a file that contain the timestamp.
const timeBytes = 9

// contents modifies the content of a file.
func contents(change func(*rand.Rand, []byte) []byte) sabotage {
	return func(r *rand.Rand, w *world, h cas.Hash) []cas.Hash {
		same := false
		w.change(h, func(old []byte) []byte {
			changed := change(r, bytes.Clone(old))
			same = bytes.Equal(old, changed)
			return changed
		})
		if same {
			return nil
		}
		return []cas.Hash{h}
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

// another returns a node other than h.
func another(r *rand.Rand, w *world, h cas.Hash) cas.Hash {
	all := w.all()
	for {
		if other := all[r.IntN(len(all))]; other != h {
			return other
		}
	}
}

func swap(r *rand.Rand, w *world, h cas.Hash) []cas.Hash {
	other := another(r, w, h)
	a, b := castest.FindRecord(w, w.store.Dir(), h), castest.FindRecord(w, w.store.Dir(), other)
	bodyA, bodyB := a.Body(), b.Body()
	a.Replace(bodyB)
	b.Replace(bodyA)
	return []cas.Hash{h, other}
}

// fsck reports any fault of any node in a store; --repair deletes nothing, and the original content can be
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
					requireNothingDeleted(t, w, h, name)
				}
			}
			restore(t, w.store.Dir(), good)
			// An open store relies on segments that only grow.
			fresh, err := fsstore.Open(t.Context(), w.store.Dir(), fsstore.Options{Home: w.home})
			require.NoError(t, err)
			w.store = fresh
			break
		}
	}
	require.Empty(t, w.check(false).Faults, "what was put back is whole")
	require.Greater(t, len(found), len(sabotages)-3, "nearly all kinds were made: %v", found)
}

// requireFound checks that there is a fault of a node.
func requireFound(t *testing.T, w *world, report fsck.Report, named []cas.Hash, format string, args ...any) {
	t.Helper()
	for _, f := range report.Faults {
		if slices.Contains(named, f.Hash) {
			return
		}
	}
	t.Fatalf("%s: not found; the report: %+v", fmt.Sprintf(format, args...), report.Faults)
}

// requireNothingDeleted repairs, and looks for what a record contained.
func requireNothingDeleted(t *testing.T, w *world, h cas.Hash, name string) {
	t.Helper()
	if name == "lost" {
		return
	}
	damaged := castest.FindRecord(t, w.store.Dir(), h).Body()
	w.check(true)
	for _, data := range snapshot(t, w.store.Dir()) {
		if bytes.Contains([]byte(data), damaged) {
			return
		}
	}
	t.Fatalf("%s: what was in %s is gone", name, h)
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
	for path := range snapshot(t, dir) {
		if _, ok := good[path]; !ok {
			require.NoError(t, os.Remove(path))
		}
	}
	for path, data := range good {
		require.NoError(t, os.WriteFile(path, []byte(data), 0o644))
	}
}
