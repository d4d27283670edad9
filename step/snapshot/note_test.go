//go:build unix

package snapshot_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/step/snapshot"
	"github.com/united-workforce/uwf/util/programtest"
)

// counted makes git log its commands, and returns a function that lists those since its last call.
func (w *world) counted() func() []string {
	w.Helper()
	bin, log := filepath.Join(w.dir, "bin"), filepath.Join(w.dir, "commands")
	require.NoError(w, os.Mkdir(bin, 0o755))
	real := strings.TrimSpace(w.sh("command -v git"))
	programtest.Write(w, filepath.Join(bin, "git"), "#!/bin/sh\necho \"$1\" >> "+log+"\nexec "+real+" \"$@\"\n")
	w.env.Environ[0] = "PATH=" + bin + ":" + os.Getenv("PATH")
	return func() []string {
		text, _ := os.ReadFile(log)
		require.NoError(w, os.WriteFile(log, nil, 0o644))
		return strings.Fields(string(text))
	}
}

func (w *world) begin() snapshot.Taken {
	w.Helper()
	diskUsage, err := snapshot.Begin(w.Context(), w.env, w.repo, &w.spec)
	require.NoError(w, err)
	return diskUsage
}

// Cached information saves processes.
func TestFewProcesses(t *testing.T) {
	t.Parallel()
	w := repository(t)
	require.NoError(t, w.open())
	first := w.begin()
	w.still()
	w.sh(`GIT_DIR="$STORE" git repack -adq`) // the other files are in a pack
	commands := w.counted()

	require.Equal(t, first.Tree, w.take().Tree)
	require.Empty(t, commands(), "nothing has changed")
	require.Equal(t, first.Tree, w.begin().Tree)
	require.Empty(t, commands(), "nothing has changed before a step")

	w.write("a", "another one\n")
	second := w.take()
	require.Equal(t, []string{"update-index"}, commands())
	require.Equal(t, w.added(), second.Tree)
	commands()
	require.Equal(t, second.Tree, w.begin().Tree)
	w.still()
	commands()
	require.Equal(t, second.Tree, w.begin().Tree)
	require.Empty(t, commands())

	w.sh("mkdir -- -d; mv a ./-d/--stdin; mv d/b ./-b; printf x > '*'")
	commands()
	renamed := w.take().Tree
	require.NotContains(t, commands(), "write-tree")
	require.Equal(t, w.added(), renamed)
	w.sh("mkdir -p d; mv ./-d/--stdin a; mv ./-b d/b; rm '*'; rmdir ./-d")
	commands()
	require.Equal(t, second.Tree, w.take().Tree)
	require.Equal(t, []string{"ls-files", "update-index"}, commands())

	changes, err := snapshot.Diff(t.Context(), w.env, w.spec.Git, first.Tree, second.Tree)
	require.NoError(t, err)
	require.Equal(t, []snapshot.Change{{Path: "a", Status: 'M', Added: 1, Removed: 1}}, changes)
	require.Equal(t, []string{"diff-tree"}, commands())
}

// The note of an index is valid only while the index is unchanged and our git directory is the same.
func TestKnownFacts(t *testing.T) {
	t.Parallel()
	w := repository(t)
	first := w.take()
	w.write("a", "two\n")
	second := w.take()
	for name, meddle := range map[string]func(){
		"nothing":                      func() {},
		"index is another":             func() { w.sh(`GIT_DIR="$STORE" GIT_INDEX_FILE=` + w.spec.Index + ` git read-tree ` + sum(first.Tree)) },
		"index is gone":                func() { require.NoError(t, os.Remove(w.spec.Index)) },
		"note is gone":                 func() { require.NoError(t, os.Remove(w.spec.Index+".json")) },
		"note is no note":              func() { require.NoError(t, os.WriteFile(w.spec.Index+".json", []byte("{"), 0o600)) },
		"note is a pipe":               func() { w.sh("rm -f " + w.spec.Index + ".json; mkfifo " + w.spec.Index + ".json") },
		"our git directory is another": func() { w.sh(`rm -rf "$STORE"`) },
		"objects are packed":           func() { w.sh(`git --git-dir "$STORE" repack -adq`) },
	} {
		meddle()
		require.Equal(t, second.Tree, w.begin().Tree, name)
		require.Contains(t, w.listed(), second.Tree, name)
		w.write("a", name)
		require.Equal(t, w.added(), w.take().Tree, name)
		w.write("a", "two\n")
		require.Equal(t, second.Tree, w.take().Tree, name)
		w.sh(`git --git-dir "$STORE" fsck --strict --no-dangling`)
	}
}

// still takes snapshots until git needn't look as long as nothing changes.
func (w *world) still() {
	w.Helper()
	require.Eventually(w, func() bool {
		w.begin()
		text, err := os.ReadFile(w.spec.Index + ".json")
		return err == nil && strings.Contains(string(text), `"dirs"`)
	}, 20*time.Second, 50*time.Millisecond)
}

// Every change is found, however small, although git doesn't look while nothing has changed.
func TestChangesWithoutALook(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"content of the same size and time": `touch -r a ../t; printf 'ONE\n' > a; touch -r ../t a`,
		"executable":                        `chmod +x a`,
		"a new file":                        `echo x > new`,
		"a new file in a directory":         `echo x > dir/new`,
		"in an empty directory":             `echo x > empty/deep/new`,
		"beside ignored files":              `echo x > out/new`,
		"in a new directory":                `mkdir -p x/y; echo x > x/y/z`,
		"a file is gone":                    `rm dir/b`,
		"a file is a link":                  `rm a; ln -s dir/b a`,
		"a directory is a link":             `mv dir ../dir; ln -s ../dir dir`,
		"a link leads elsewhere":            `ln -sfn dir link`,
		"a file is a directory":             `rm a; mkdir a; echo x > a/x`,
		"renamed":                           `mv a c`,
		"rules that ignore themselves":      `printf '.gitignore\n' > out/.gitignore`,
		"less is ignored":                   `printf '' > .gitignore`,
		"less is ignored everywhere":        `printf '' > ~/ignore`,
		"ignored files":                     `echo x > out/x.o; echo x > ignored/y`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := repository(t)
			w.sh(`mkdir -p dir empty/deep out ignored; echo b > dir/b; echo o > out/o.o; echo i > ignored/i; ln -s a link
				printf '*.o\nignored\n' > .gitignore; printf '.gitignore\n*.o\n' > out/.gitignore
				mkdir -p ~/.config/git; echo '*.tmp' > ~/ignore; ln -s ../../ignore ~/.config/git; echo t > t.tmp`)
			w.write("a", "one\n")
			require.NoError(t, w.open())
			w.still()
			before := w.take().Tree
			w.sh(script)
			after := w.take().Tree
			require.Equal(t, w.added(), after)
			require.Equal(t, name != "ignored files" && name != "rules that ignore themselves", before != after)
		})
	}
}

// A program can restore a file's size and modification time, and most builds of git compare only the seconds of the other
// time.
func TestChangesWithinASecond(t *testing.T) {
	t.Parallel()
	w := repository(t)
	for _, text := range []string{"new", "odd", "old", "two", "six", "ten"} { // some within the same second
		w.sh("echo " + text + " > a; touch -d 2020-01-01 a")
		require.Equal(t, w.added(), w.take().Tree)
	}
}

// Random changes, many of them within one tick of the clock, are found as git finds them without any note. Programs can
// set all times but that of the last change.
func TestRandomChanges(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			w := repository(t)
			w.sh("rm -rf .git; git init -q --object-format=" + format + "; git add .; git commit -qm first")
			w.changeAtRandom()
		})
	}
}

func (w *world) changeAtRandom() {
	w.sh(`printf '*.o\nignored\n' > .gitignore; mkdir -p d/e ignored empty; touch -d 2020-01-01 a d/b`)
	seed := uint64(time.Now().UnixNano())
	w.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	dirs := []string{".", "d", "d/e", "empty", "new", "new/deep", "ignored", "d.o"}
	name := func() string {
		return filepath.Join(w.root, dirs[r.IntN(len(dirs))], []string{"a", "b", "c", "x.o"}[r.IntN(4)])
	}
	write := func(file, text string) {
		_ = os.MkdirAll(filepath.Dir(file), 0o755)
		_ = os.WriteFile(file, []byte(text), 0o644)
	}
	same := func() string { return fmt.Sprintf("%04d\n", r.IntN(10_000)) }
	old := time.Unix(1_577_836_800, 0)
	changes := map[string]func(){
		"write":            func() { write(name(), strings.Repeat("x", r.IntN(5))) },
		"write as much":    func() { write(name(), same()) },
		"restore the time": func() { f := name(); write(f, same()); _ = os.Chtimes(f, old, old) },
		"touch":            func() { f := name(); _ = os.Chtimes(f, time.Now(), time.Now()) },
		"rename": func() {
			f := name()
			write(f+".tmp", same())
			_ = os.Chtimes(f+".tmp", old, old)
			_ = os.Rename(f+".tmp", f)
		},
		"move":          func() { _ = os.Rename(name(), name()) },
		"link":          func() { f := name(); _ = os.Remove(f); _ = os.Link(name(), f) },
		"symbolic link": func() { f := name(); _ = os.Remove(f); _ = os.Symlink([]string{"a", "d", "none"}[r.IntN(3)], f) },
		"mode": func() {
			f := name()
			if info, err := os.Stat(f); err == nil && !info.IsDir() { // git can't look into such a directory
				_ = os.Chmod(f, []os.FileMode{0o644, 0o755}[r.IntN(2)])
			}
		},
		"remove":           func() { _ = os.Remove(name()) },
		"remove directory": func() { _ = os.RemoveAll(filepath.Dir(filepath.Join(w.root, "x", dirs[r.IntN(len(dirs))], "x"))) },
		"directory":        func() { f := name(); _ = os.Remove(f); write(filepath.Join(f, "in"), same()) },
		"move directory":   func() { _ = os.Rename(filepath.Join(w.root, "d"), filepath.Join(w.root, "new/moved")) },
		"directory is link": func() {
			_ = os.Rename(filepath.Join(w.root, "d/e"), filepath.Join(w.dir, "e"))
			_ = os.Symlink(filepath.Join(w.dir, "e"), filepath.Join(w.root, "d/e"))
		},
		"rules": func() {
			write(filepath.Join(w.root, ".gitignore"), []string{"*.o\nignored\n", "x.o\n", "c\n"}[r.IntN(3)])
		},
		"rules in a directory": func() {
			write(filepath.Join(w.root, dirs[1+r.IntN(len(dirs)-1)], ".gitignore"), []string{"b\n", ".gitignore\n", "!x.o\n"}[r.IntN(3)])
		},
		"map": func() {
			f, err := os.OpenFile(name(), os.O_RDWR, 0)
			if err != nil {
				return
			}
			defer func() { _ = f.Close() }()
			if info, err := f.Stat(); err == nil && info.Size() > 0 && info.Mode().IsRegular() {
				if text, err := syscall.Mmap(int(f.Fd()), 0, 1, syscall.PROT_WRITE, syscall.MAP_SHARED); err == nil {
					text[0] = byte('a' + r.IntN(26)) // tmpfs notices no write after a read
					_ = syscall.Munmap(text)
				}
			}
		},
	}
	names := slices.Sorted(maps.Keys(changes))
	before := w.take().Tree
	for range 60 {
		var done []string
		for range r.IntN(4) {
			what := names[r.IntN(len(names))]
			done = append(done, what)
			changes[what]()
		}
		want := strings.TrimSpace(w.sh(`export GIT_DIR="$STORE" GIT_WORK_TREE=. GIT_INDEX_FILE=../whole; rm -f $GIT_INDEX_FILE
			git read-tree ` + sum(before) + `; git add -A; git write-tree`)) // no file is as in this index
		now := w.take().Tree
		require.Equal(w, want, sum(now), "after %v: %s", done, w.sh(`git --git-dir "$STORE" diff-tree -r --name-status `+sum(now)+" "+want))
		before = now
	}
}

// A nested repository in a directory that git knows is reported, as if git had looked at all files.
func TestNestedRepositoryWithoutALook(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"new", "empty", "d/new"} {
		w := repository(t)
		w.sh("mkdir empty")
		require.NoError(t, w.open())
		w.still()
		w.sh("git init -q " + at + "; echo x > " + at + "/x")
		require.Equal(t, []string{at}, w.take().Left)
	}
}

// If another git holds the lock of a ref, we wait.
func TestRefIsLocked(t *testing.T) {
	t.Parallel()
	w := repository(t)
	first := w.take()
	ref := "refs/uwf-kept/" + sum(first.Tree)
	lock := filepath.Join(w.spec.Git, ref+".lock")
	require.NoError(t, os.MkdirAll(filepath.Dir(lock), 0o755))
	require.NoError(t, os.WriteFile(lock, nil, 0o600))
	time.AfterFunc(50*time.Millisecond, func() { _ = os.Remove(lock) })
	other := w.repo.Store(filepath.Join(w.dir, "other"))
	require.NoError(t, w.repo.Seed(t.Context(), other, true))
	require.NoError(t, snapshot.Copy(t.Context(), w.env, w.spec.Git, other, first.Tree))
	require.True(t, snapshot.Has(t.Context(), w.env, other, first.Tree))
}

// What git knows about a file only from its index stays when git reads the file again.
func TestDoubtfulFiles(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"mode":      `chmod +x a; git add a; git commit -qm x; git config core.fileMode false; chmod -x a`,
		"line ends": `printf 'x\r\n' > a; git add a; git commit -qm x; git config core.autocrlf input`,
		"link":      `ln -s a l; git add l; git commit -qm x; git config core.symlinks false; rm l; printf a > l`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := repository(t)
			w.sh(script)
			first := w.take()
			require.Equal(t, w.sh("git rev-parse HEAD^{tree}"), sum(first.Tree)+"\n")
			note, err := os.ReadFile(w.spec.Index + ".json")
			require.NoError(t, err)
			note = regexp.MustCompile(`"looked":\d+`).ReplaceAll(note, []byte(`"looked":1`))
			require.NoError(t, os.WriteFile(w.spec.Index+".json", note, 0o600))
			require.Equal(t, first.Tree, w.take().Tree)
		})
	}
}

// A process is killed after it has replaced the index, and another one takes the snapshot again.
func TestKilledBeforeTheNote(t *testing.T) {
	t.Parallel()
	w := repository(t)
	first := w.take()
	note, err := os.ReadFile(w.spec.Index + ".json")
	require.NoError(t, err)
	w.write("a", "two\n")
	second := w.take()
	require.NoError(t, os.WriteFile(w.spec.Index+".json", note, 0o600))
	w.spec.Tree = first.Tree
	require.Equal(t, second.Tree, w.take().Tree)
}

// A snapshot never refers to an object that is missing.
func TestMissingObjects(t *testing.T) {
	t.Parallel()
	w := repository(t)
	w.write("d/c", "three\n")
	w.take()
	w.write("d/c", "four\n")
	at := strings.TrimSpace(w.sh("git rev-parse HEAD:d/b"))
	require.NoError(t, os.Remove(filepath.Join(w.spec.Git, "objects", at[:2], at[2:])))
	_, err := snapshot.Take(t.Context(), w.env, w.spec)
	require.Error(t, err)
	require.Equal(t, w.added(), w.begin().Tree)
	w.sh(`git --git-dir "$STORE" fsck --strict --no-dangling`)
}

// With index.skipHash, the user's index has no checksum.
func TestIndexWithoutChecksum(t *testing.T) {
	t.Parallel()
	w := repository(t)
	index := filepath.Join(w.root, ".git", "index")
	info, err := os.Stat(index)
	require.NoError(t, err)
	require.NoError(t, errors.Join(os.Truncate(index, info.Size()-20), os.Truncate(index, info.Size())))
	require.NoError(t, w.open())
	w.still()
	commands := w.counted()
	require.Eventually(t, func() bool { w.take(); return len(commands()) == 0 }, 20*time.Second, 50*time.Millisecond)
	require.Equal(t, w.added(), w.take().Tree)
}

// A flipped bit in the index, which git does not notice, does not get into a snapshot.
func TestFlippedIndex(t *testing.T) {
	t.Parallel()
	w := repository(t)
	w.write("d/c", "three\n")
	w.write("e/f", "four\n")
	for i := range 40 {
		w.take()
		w.still()
		index, err := os.OpenFile(w.spec.Index, os.O_RDWR, 0)
		require.NoError(t, err)
		info, err := index.Stat()
		require.NoError(t, err)
		at, b := info.Size()*int64(i)/40, make([]byte, 1)
		_, err = index.ReadAt(b, at)
		require.NoError(t, err)
		b[0] ^= 1 << (i % 8)
		_, err = index.WriteAt(b, at)
		require.NoError(t, errors.Join(err, index.Close(), os.Chtimes(w.spec.Index, info.ModTime(), info.ModTime())))
		w.write("e/f", fmt.Sprint(i))
		require.Equal(t, w.added(), w.begin().Tree, "byte %d", at)
		w.sh(`git --git-dir "$STORE" fsck --strict --no-dangling`)
	}
}
