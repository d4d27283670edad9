package cas_test

import (
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
)

// readVectors reads a file of input/output pairs that the original produced.
func readVectors[T any](t testing.TB, name string) T {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	var v T
	require.NoError(t, json.Unmarshal(text, &v))
	return v
}

type hashVector struct {
	Name          string          `json:"name"`
	TypeHash      *cas.Hash       `json:"typeHash"` // null: the node is its own type
	Payload       json.RawMessage `json:"payload"`
	PayloadIsJSON bool            `json:"payloadIsJson"`
	CBORHex       string          `json:"cborHex"`
	Hash          cas.Hash        `json:"hash"`
}

// With xxh64 every hash equals the original's, byte for byte.
func TestHashVectors(t *testing.T) {
	t.Parallel()
	for _, v := range readVectors[[]hashVector](t, "hash-vectors.json") {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			original, err := hex.DecodeString(v.CBORHex)
			require.NoError(t, err)
			if !v.PayloadIsJSON {
				require.Error(t, cas.CheckCanonical(original), "JSON cannot say it: %s", notJSON[v.Name])
				require.Contains(t, notJSON, v.Name)
				return
			}
			payload, err := cas.Encode(parseJSON(t, v.Payload))
			require.NoError(t, err)
			require.Equal(t, v.CBORHex, hex.EncodeToString(payload))
			require.Equal(t, v.Hash, cas.XXH64.Sum(deref(v.TypeHash), payload))

			value, err := cas.Decode(payload)
			require.NoError(t, err)
			again, err := cas.Encode(value)
			require.NoError(t, err)
			require.Equal(t, payload, again)
		})
	}
}

// notJSON are the vectors that we refuse, deliberately.
var notJSON = map[string]string{
	"number NaN (payloadJs)":                  "the original stores what YAML's .nan gives",
	"number Infinity (payloadJs)":             "the original stores what YAML's .inf gives",
	"number -Infinity (payloadJs)":            "the original stores what YAML's -.inf gives",
	"undefined (payloadJs)":                   "undefined is JavaScript's",
	"object with undefined value (payloadJs)": "the original keeps the key, JSON would drop it",
}

func TestTypeHashes(t *testing.T) {
	t.Parallel()
	want := readVectors[struct {
		Aliases map[string]cas.Hash `json:"aliases"`
	}](t, "type-hashes.json").Aliases

	meta := cas.XXH64.MetaHash()
	require.Equal(t, want["@ocas/schema"], meta)
	for _, primitive := range []string{"string", "number", "integer", "boolean", "object", "array", "null"} {
		payload, err := cas.Encode(map[string]any{"type": primitive})
		require.NoError(t, err)
		require.Equal(t, want["@ocas/"+primitive], cas.XXH64.Sum(meta, payload), primitive)
	}
}

func TestWorkflowHashes(t *testing.T) {
	t.Parallel()
	const workflowType = "4EAEYQKFHTJ23"
	for _, v := range readVectors[[]struct {
		File         string          `json:"file"`
		Materialized json.RawMessage `json:"materialized"`
		Hash         cas.Hash        `json:"hash"`
		CBORHex      string          `json:"cborHex"`
	}](t, "workflow-hash.json") {
		payload, err := cas.Encode(parseJSON(t, v.Materialized))
		require.NoError(t, err, v.File)
		require.Equal(t, v.CBORHex, hex.EncodeToString(payload), v.File)
		require.Equal(t, v.Hash, cas.XXH64.Sum(workflowType, payload), v.File)
	}
}

func TestNodeFileExample(t *testing.T) {
	t.Parallel()
	v := readVectors[struct {
		Node struct {
			Type      cas.Hash `json:"type"`
			Payload   any      `json:"payload"`
			Timestamp int64    `json:"timestamp"`
		} `json:"node"`
		CBORHex string   `json:"cborHex"`
		Hash    cas.Hash `json:"hash"`
	}](t, "node-file-example.json")

	payload, err := cas.Encode(v.Node.Payload)
	require.NoError(t, err)
	n := cas.Node{Hash: v.Hash, Type: v.Node.Type, Payload: payload, Timestamp: v.Node.Timestamp}
	require.NoError(t, cas.XXH64.Check(n))
	file := cas.MarshalFile(n)
	require.Equal(t, v.CBORHex, hex.EncodeToString(file))

	read, err := cas.XXH64.UnmarshalFile(v.Hash, file)
	require.NoError(t, err)
	require.Equal(t, n, read)
}

// XXH3-64 with seed 0, checked against the reference implementation's values,
// which are those of an empty type.
func TestXXH3IsTheReference(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]uint64{
		"":            0x2d06800538d394c2,
		"a":           0xe6c632b61e964e1f,
		"abc":         0x78af5f94892f3950,
		"hello world": 0xd447b1ea40e6988b,
	} {
		require.Equal(t, protocol.HashOf(want), cas.XXH3.Sum("", []byte(text)), text)
		for i := range len(text) {
			require.Equal(t, protocol.HashOf(want), cas.XXH3.Sum(cas.Hash(text[:i]), []byte(text[i:])), "the type is a prefix")
		}
	}
}

func TestUnknownAlgorithmNamesNothing(t *testing.T) {
	t.Parallel()
	a := cas.Algorithm("blake9")
	require.False(t, a.Known())
	require.Empty(t, a.Sum("", nil))
	require.Error(t, a.Check(cas.Node{Hash: "0000000000000", Type: "0000000000000", Payload: []byte{0xf6}}))
}

var update = flag.Bool("update", false, "rewrite the encoded schemas from those of package protocol")

// The schemas that are part of the program are those of package protocol.
func TestSchemaFiles(t *testing.T) {
	t.Parallel()
	texts := map[string][]byte{"meta": protocol.MetaSchemaJSON()}
	for _, typ := range protocol.Types() {
		texts[typ.String()] = protocol.SchemaJSON(typ)
	}
	for name, text := range texts {
		want, err := cas.Encode(parseJSON(t, text))
		require.NoError(t, err)
		path := filepath.Join("kinds", name+".cbor")
		if *update {
			require.NoError(t, os.WriteFile(path, want, 0o644))
		}
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, want, got, "%s: run go generate in this directory", path)
	}
}

func TestKindsAreRemembered(t *testing.T) {
	t.Parallel()
	for _, a := range []cas.Algorithm{cas.XXH3, cas.XXH64} {
		kinds := cas.NewKinds(a)
		require.Equal(t, a.MetaHash(), kinds.MetaHash())
		for _, typ := range protocol.Types() {
			n := kinds.Schema(typ)
			want, err := cas.Encode(parseJSON(t, protocol.SchemaJSON(typ)))
			require.NoError(t, err)
			require.Equal(t, want, n.Payload, typ)
			require.NoError(t, a.Check(n), typ)
			require.Equal(t, kinds.MetaHash(), n.Type)
		}
	}
}
