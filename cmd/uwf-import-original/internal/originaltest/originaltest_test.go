package originaltest_test

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cmd/uwf-import-original/internal/originaltest"
)

// The hashes of the schemas match those computed by the original, so the other tests use realistic data.
func TestSchemasAreTheOriginals(t *testing.T) {
	t.Parallel()
	o := originaltest.New(t, t.TempDir(), originaltest.Flat)
	for name, want := range map[string]cas.Hash{
		"workflow": "4EAEYQKFHTJ23", "start": "44P8EP6N3NXZ5", "step": "108DB063KRQWW",
		"string": "7VQ43ZSJTEWA7", "mock-detail": "EWDF8D2DQ06CK",
	} {
		require.Equal(t, want, o.Schema(name), name)
	}
	require.Equal(t, cas.Hash("CTS5P6RD8HMCS"), cas.NewKinds(cas.XXH64).MetaHash())
}

// A file of the original, byte for byte.
func TestFilesAreTheOriginals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := originaltest.New(t, dir, originaltest.Nodes)
	h := o.Text("hi")
	require.Equal(t, cas.Hash("C8YYHNMSYY3PX"), h)
	data, err := os.ReadFile(filepath.Join(dir, ".ocas", "nodes", "C8YYHNMSYY3PX.bin"))
	require.NoError(t, err)
	const timestamp = 9
	require.Equal(t, "a364747970656d37565134335a534a5445574137677061796c6f61646268696974696d657374616d70",
		hex.EncodeToString(data[:len(data)-timestamp]))
}
