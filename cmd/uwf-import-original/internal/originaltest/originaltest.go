// Package originaltest writes data in the original's formats, for tests: node files in either layout with
// their index of types, a variable database whose latest changes are still in the write-ahead log, and the
// index files of older versions. Its schemas are those that the original's versions register; the hashes of
// the main ones are checked against hashes computed by the original.
package originaltest

import (
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // the driver

	"github.com/united-workforce/uwf/cas"
)

// Layout is the location of the node files.
type Layout string

// Layouts.
const (
	Flat  Layout = ""      // <ocas>/<hash>.bin
	Nodes Layout = "nodes" // <ocas>/nodes/<hash>.bin
)

//go:embed schemas/*.json
var schemas embed.FS

// Original is a user's data.
type Original struct {
	Ocas, Uwf string

	t      testing.TB
	layout Layout
	clock  int64
	live   string // location of the database while it is open
	db     *sql.DB
}

// New creates an empty ~/.ocas and ~/.uwf in a directory, with the meta-schema.
func New(t testing.TB, dir string, layout Layout) *Original {
	o := &Original{
		Ocas: filepath.Join(dir, ".ocas"), Uwf: filepath.Join(dir, ".uwf"),
		t: t, layout: layout, clock: 1_780_000_000_000, live: filepath.Join(t.TempDir(), "_store.db"),
	}
	for _, d := range []string{filepath.Join(o.Ocas, string(layout)), filepath.Join(o.Ocas, "_index"), filepath.Join(o.Ocas, "vars"), o.Uwf} {
		require.NoError(t, os.MkdirAll(d, 0o755))
	}
	meta := cas.NewKinds(cas.XXH64).Meta()
	meta.Timestamp = o.tick()
	o.write(meta)
	o.Append(filepath.Join("_index", "_meta"), string(meta.Hash)+"\n")
	return o
}

func (o *Original) tick() int64 {
	o.clock += 1000
	return o.clock
}

// Path returns the file of a node.
func (o *Original) Path(h cas.Hash) string {
	return filepath.Join(o.Ocas, string(o.layout), string(h)+".bin")
}

// Schema stores one of the original's schemas.
func (o *Original) Schema(name string) cas.Hash {
	data, err := schemas.ReadFile("schemas/" + name + ".json")
	require.NoError(o.t, err)
	var schema any
	require.NoError(o.t, json.Unmarshal(data, &schema))
	return o.Put(cas.NewKinds(cas.XXH64).MetaHash(), schema)
}

// Put stores a value unless it exists, and returns its hash.
func (o *Original) Put(typ cas.Hash, value any) cas.Hash {
	payload, err := cas.Encode(value)
	require.NoError(o.t, err)
	n := cas.Node{Hash: cas.XXH64.Sum(typ, payload), Type: typ, Payload: payload}
	if _, err := os.Stat(o.Path(n.Hash)); err != nil {
		n.Timestamp = o.tick()
		o.write(n)
	}
	return n.Hash
}

// Text stores a text.
func (o *Original) Text(s string) cas.Hash { return o.Put(o.Schema("string"), s) }

func (o *Original) write(n cas.Node) {
	require.NoError(o.t, os.WriteFile(o.Path(n.Hash), cas.MarshalFile(n), 0o644))
	o.Append(filepath.Join("_index", string(n.Type)), string(n.Hash)+"\n")
}

// Append appends to a file in the store.
func (o *Original) Append(name, text string) { o.append(filepath.Join(o.Ocas, name), text) }

// AppendHome appends to a file in the home.
func (o *Original) AppendHome(name, text string) { o.append(filepath.Join(o.Uwf, name), text) }

func (o *Original) append(path, text string) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	require.NoError(o.t, err)
	_, err = f.WriteString(text)
	require.NoError(o.t, err)
	require.NoError(o.t, f.Close())
}

// tables is the schema of the original's database.
const tables = `
PRAGMA journal_mode = WAL;
PRAGMA foreign_keys = ON;
CREATE TABLE vars (name TEXT NOT NULL, schema TEXT NOT NULL, value TEXT NOT NULL,
	created INTEGER NOT NULL, updated INTEGER NOT NULL,
	tags TEXT NOT NULL DEFAULT '{}', labels TEXT NOT NULL DEFAULT '[]', PRIMARY KEY (name, schema));
CREATE TABLE var_history (name TEXT NOT NULL, schema TEXT NOT NULL, value TEXT NOT NULL,
	position INTEGER NOT NULL, set_at INTEGER NOT NULL, PRIMARY KEY (name, schema, position),
	FOREIGN KEY (name, schema) REFERENCES vars(name, schema) ON DELETE CASCADE);
CREATE TABLE tags (target TEXT NOT NULL, key TEXT NOT NULL, value TEXT, created INTEGER NOT NULL, PRIMARY KEY (target, key));
CREATE INDEX idx_vars_name ON vars(name);
PRAGMA wal_checkpoint(TRUNCATE);
PRAGMA wal_autocheckpoint = 0;`

// Var sets a variable as the original does, except that it keeps variants of other types, as a kill may.
func (o *Original) Var(name string, value cas.Hash, tags map[string]string) {
	ctx := context.Background()
	if o.db == nil {
		db, err := sql.Open("sqlite", o.live)
		require.NoError(o.t, err)
		db.SetMaxOpenConns(1) // the settings belong to a connection
		_, err = db.ExecContext(ctx, tables)
		require.NoError(o.t, err)
		o.db = db
		o.t.Cleanup(func() { _ = db.Close() })
	}
	if tags == nil {
		tags = map[string]string{}
	}
	text, err := json.Marshal(tags)
	require.NoError(o.t, err)
	at := o.tick()
	_, err = o.db.ExecContext(ctx, "INSERT OR REPLACE INTO vars VALUES (?, ?, ?, ?, ?, ?, '[]')", name, o.typeOf(value), value, at, at, string(text))
	require.NoError(o.t, err)
	_, err = o.db.ExecContext(ctx, "INSERT OR REPLACE INTO var_history VALUES (?, ?, ?, 0, ?)", name, o.typeOf(value), value, at)
	require.NoError(o.t, err)
}

// SetTags replaces the text of a variable's tags.
func (o *Original) SetTags(name, text string) {
	_, err := o.db.ExecContext(context.Background(), "UPDATE vars SET tags = ? WHERE name = ?", text, name)
	require.NoError(o.t, err)
}

// typeOf returns the type of a node, or a made-up one if it cannot be read.
func (o *Original) typeOf(h cas.Hash) cas.Hash {
	data, err := os.ReadFile(o.Path(h))
	if err != nil {
		return "0000000000000"
	}
	n, err := cas.XXH64.UnmarshalFile(h, data)
	if err != nil {
		return "0000000000000"
	}
	return n.Type
}

// Save writes the database to the original's location in the state that a kill leaves: all changes are in the
// write-ahead log, and the database file itself is empty.
func (o *Original) Save() {
	if o.db == nil {
		return
	}
	for _, part := range []string{"", "-wal", "-shm"} {
		data, err := os.ReadFile(o.live + part)
		require.NoError(o.t, err)
		require.NoError(o.t, os.WriteFile(filepath.Join(o.Ocas, "vars", "_store.db"+part), data, 0o644))
	}
}

// Damage flips a bit in the file of a node.
func (o *Original) Damage(h cas.Hash) {
	data, err := os.ReadFile(o.Path(h))
	require.NoError(o.t, err)
	data[len(data)/2] ^= 4
	require.NoError(o.t, os.WriteFile(o.Path(h), data, 0o644))
}

// Lose removes the file of a node.
func (o *Original) Lose(h cas.Hash) { require.NoError(o.t, os.Remove(o.Path(h))) }

// Forget keeps the database on disk as it is.
func (o *Original) Forget() {
	require.NoError(o.t, o.db.Close())
	o.db = nil
}
