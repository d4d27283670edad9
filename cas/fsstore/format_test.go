package fsstore_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

func TestTheFirstWriteMakesTheStore(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "a", "cas")
	s := open(t, dir, fsstore.Options{})
	n := castest.Node(t, s.Algorithm(), "hi")
	_, err := s.Get(ctx, n.Hash)
	require.ErrorIs(t, err, cas.ErrNotFound)
	for range s.All(ctx, "") {
		t.Fatal("there are no nodes")
	}
	require.NoError(t, s.Put(ctx))
	require.NoDirExists(t, dir, "reading and doing nothing leave no trace")

	require.NoError(t, s.Put(ctx, n))
	require.Equal(t, `{"version":2,"hash":"xxh3"}`+"\n", read(t, filepath.Join(dir, "format.json")))
	require.Equal(t, cas.MarshalFile(n), castest.FindRecord(t, dir, n.Hash).Body())
	require.Equal(t, dir, s.Dir())
}

func read(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

func write(t testing.TB, path, data string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.RemoveAll(path))
	require.NoError(t, os.WriteFile(path, []byte(data), 0o644))
}

func TestOptionsOfANewStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, fsstore.Options{Hash: cas.XXH64})
	require.NoError(t, s.Put(context.Background(), castest.Node(t, cas.XXH64, 1)))
	require.Equal(t, `{"version":2,"hash":"xxh64"}`+"\n", read(t, filepath.Join(dir, "format.json")))
	require.Equal(t, cas.XXH64, open(t, dir, fsstore.Options{Hash: cas.XXH3}).Algorithm(), "a store keeps its hash function")
}

func TestUnknownOptions(t *testing.T) {
	t.Parallel()
	_, err := fsstore.Open(context.Background(), t.TempDir(), fsstore.Options{Hash: "md5"})
	prosetest.Error(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = fsstore.Open(ctx, t.TempDir(), fsstore.Options{})
	require.ErrorIs(t, err, context.Canceled)
}

// A newer program can rely on properties that we would break or miss, so its stores are neither read, written
// nor recreated.
func TestStoresOfANewerProgram(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, c := range map[string]struct{ format, want string }{
		"version":      {`{"version":3,"hash":"xxh3"}`, "version 3"},
		"key":          {`{"version":2,"hash":"xxh3","pack":true}`, "pack"},
		"all else":     {`{"version":9,"hash":["sha256"],"layout":"packs"}`, "version 9"},
		"no object":    {`[]`, "another form"},
		"a text":       {`{"version":"2","hash":"xxh3"}`, `version "2"`},
		"a fraction":   {`{"version":1.5,"hash":"xxh3"}`, "version 1.5"},
		"huge":         {`{"version":1e99,"hash":"xxh3"}`, "version 1e99"},
		"version 0":    {`{"version":0,"hash":"xxh3"}`, "version 0"},
		"no version":   {`{"hash":"xxh3"}`, "version"},
		"no hash":      {`{"version":2}`, "hash function"},
		"unknown hash": {`{"version":2,"hash":"xzh3"}`, `hash function "xzh3"`},
		"layout":       {`{"version":1,"hash":"xxh3","layout":"packs","flush":"auto"}`, `layout "packs"`},
		"no layout":    {`{"version":1,"hash":"xxh3","flush":"auto"}`, `layout`},
		"flush":        {`{"version":1,"hash":"xxh3","layout":"fan2","flush":"magic"}`, `flush mode "magic"`},
		"old key":      {`{"version":2,"hash":"xxh3","layout":"fan2"}`, `layout "fan2"`},
		"a mark":       {"\ufeff" + `{"version":3,"hash":"xxh3"}`, "version 3"},
		"twice":        {`{"version":3,"version":2,"hash":"xxh3"}`, `duplicate key "version"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			require.NoError(t, open(t, dir, fsstore.Options{}).Put(ctx, castest.Node(t, cas.XXH3, "there")))
			write(t, filepath.Join(dir, "format.json"), c.format)
			_, opened := fsstore.Open(ctx, dir, fsstore.Options{})
			for _, err := range []error{opened, fsstore.Readable(dir)} {
				require.ErrorIs(t, err, &protocol.Error{Code: protocol.CodeUnsupportedVersion})
				require.ErrorContains(t, err, c.want)
				require.ErrorContains(t, err, dir)
			}
			require.Equal(t, c.format, read(t, filepath.Join(dir, "format.json")))
		})
	}
}

// A byte order mark added by an editor changes nothing.
func TestFormatWithAMark(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := castest.Node(t, cas.XXH3, "there")
	require.NoError(t, open(t, dir, fsstore.Options{}).Put(t.Context(), n))
	write(t, filepath.Join(dir, "format.json"), "\ufeff"+read(t, filepath.Join(dir, "format.json")))
	_, err := open(t, dir, fsstore.Options{}).Get(t.Context(), n.Hash)
	require.NoError(t, err)
}

func TestStoresThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ path, content string }{
		"format cut short": {"format.json", `{"version":1,`},
		"format empty":     {"format.json", ``},
		"format is lost":   {"nodes/7V/7VQ43ZSJTEWA7.bin", "x"},
		"of packs":         {"packs/00000001-1.pack", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, filepath.Join(dir, filepath.FromSlash(c.path)), c.content)
			_, err := fsstore.Open(context.Background(), dir, fsstore.Options{})
			prosetest.Error(t, err)
			require.ErrorContains(t, err, dir)
			require.ErrorIs(t, err, &protocol.Error{Code: protocol.CodeCorrupt})
		})
	}
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	_, err := fsstore.Open(context.Background(), file, fsstore.Options{})
	require.ErrorContains(t, err, file)
}

// A store of the original is used unchanged, and none of our files are added.
func TestStoresOfTheOriginal(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for layout, sub := range map[string]string{"flat": "", "nodes": "nodes"} {
		t.Run(layout, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			hi := castest.Node(t, cas.XXH64, "hi")
			require.Equal(t, cas.Hash("C8YYHNMSYY3PX"), hi.Hash, "as in the original's own example")
			write(t, filepath.Join(dir, sub, "C8YYHNMSYY3PX.bin"), string(cas.MarshalFile(hi)))
			write(t, filepath.Join(dir, "_index", "7VQ43ZSJTEWA7"), "C8YYHNMSYY3PX\n")
			write(t, filepath.Join(dir, sub, "C8YYHNMSYY3PX.tmp"), "a torn write")

			s := open(t, dir, fsstore.Options{Hash: cas.XXH3, Home: dir})
			require.Equal(t, cas.XXH64, s.Algorithm())
			got, err := s.Get(ctx, hi.Hash)
			require.NoError(t, err)
			require.Equal(t, hi, got)

			ours := castest.Node(t, cas.XXH64, "ours")
			require.NoError(t, s.Put(ctx, ours))
			require.NoError(t, s.Commit(ctx, hi, ours))
			require.FileExists(t, filepath.Join(dir, sub, string(ours.Hash)+".bin"))
			require.NoFileExists(t, filepath.Join(dir, "format.json"))
			require.NoFileExists(t, filepath.Join(dir, "format.lock"))
			require.ElementsMatch(t, []cas.Hash{hi.Hash, ours.Hash}, list(t, s))
			require.ElementsMatch(t, []cas.Hash{hi.Hash, ours.Hash}, list(t, open(t, dir, fsstore.Options{})))
		})
	}
}

func list(t testing.TB, s cas.Store) []cas.Hash {
	t.Helper()
	return castest.List(t, s, "")
}

func TestAllIgnoresOtherFiles(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	s := open(t, dir, fsstore.Options{})
	n := castest.Node(t, cas.XXH3, "node")
	require.NoError(t, s.Put(ctx, n))
	all := list(t, s)
	require.Contains(t, all, n.Hash)
	for _, name := range []string{"log/README", "log/2.seg", "log/00000002.seg.bak", "log/.tmp-00000002.seg-01", "packs/x.pack",
		"packs/00000001-0.pack", "nodes/x"} {
		write(t, filepath.Join(dir, filepath.FromSlash(name)), "x")
	}
	require.Equal(t, all, list(t, s))
	require.Equal(t, all, list(t, open(t, dir, fsstore.Options{})))
}

// A store starts with the schemas of our kinds, durable before it has a format. After a kill in between, it
// can still be created.
func TestKilledWhileMakingAStore(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	s, err := fsstore.Open(ctx, dir, fsstore.Options{})
	require.NoError(t, err)
	require.NoError(t, s.Make(ctx, 1))
	for _, k := range protocol.Kinds() {
		_, err := s.Get(ctx, s.Kinds().Hash(k))
		require.NoError(t, err, k)
	}
	require.NoError(t, os.Remove(filepath.Join(dir, "format.json")))
	s, err = fsstore.Open(ctx, dir, fsstore.Options{Hash: cas.XXH64})
	require.NoError(t, err)
	require.False(t, s.Exists())
	n := castest.Node(t, cas.XXH64, "second")
	require.NoError(t, s.Commit(ctx, n))
	_, err = open(t, dir, fsstore.Options{}).Get(ctx, n.Hash)
	require.NoError(t, err)
	for _, foreign := range cas.NewKinds(cas.XXH3).Foundation() {
		require.NotContains(t, list(t, s), foreign.Hash)
	}

	require.NoError(t, os.Remove(filepath.Join(dir, "format.json")))
	_, err = fsstore.Open(ctx, dir, fsstore.Options{})
	require.ErrorContains(t, err, "format.json", "a store that lost its format is not guessed at")
}
