package pgstore

import (
	"cmp"
	"context"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/united-workforce/uwf/cas"
)

// recent caches nodes that were just put or read, because the next reader of a chain needs them. It may
// contain nodes that were redacted since, so only a [reader] uses it.
type recent struct {
	mu    sync.Mutex
	nodes map[cas.Hash]cas.Node
	order []cas.Hash
	size  int
	swept int64 // value of format.swept for which it is valid
}

const (
	recentBytes = 64 << 20
	recentEntry = 256 // approximate size without the payload
)

func (m *recent) get(h cas.Hash) (cas.Node, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, ok := m.nodes[h]
	return n, ok
}

// state returns the value of format.swept for which it is valid.
func (m *recent) state() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.swept
}

// reset forgets all nodes if some have been removed from the database since.
func (m *recent) reset(swept int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if swept != m.swept {
		m.swept, m.nodes, m.order, m.size = swept, nil, nil, 0
	}
}

// add adds a node that was in the database at a state.
func (m *recent) add(n cas.Node, swept int64) {
	size := len(n.Payload) + recentEntry
	if size > recentBytes/8 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.nodes[n.Hash]; known || swept != m.swept {
		return
	}
	if m.nodes == nil {
		m.nodes = map[cas.Hash]cas.Node{}
	}
	m.nodes[n.Hash], m.size = n, m.size+size
	m.order = append(m.order, n.Hash)
	for m.size > recentBytes {
		old := m.order[0]
		m.order, m.size = m.order[1:], m.size-len(m.nodes[old].Payload)-recentEntry
		delete(m.nodes, old)
	}
}

// remember caches nodes put after a state, except those that the database stores differently.
func (db *DB) remember(put []given, different []cas.Hash, swept int64) {
	other := make(map[cas.Hash]bool, len(different))
	for _, h := range different {
		other[h] = true
	}
	for _, n := range put {
		if n.tombstone == nil && !other[n.Hash] {
			db.recent.add(n.Node, swept)
		}
	}
}

// reader reads chains efficiently: with each node, it loads the nodes reachable from it. In CBOR, a hash is
// the letter m followed by 13 characters, so the database can find references in a single statement instead
// of one round trip per step. The result is only a prefetch: each node is verified against its hash, and the
// actual references are determined by the schemas.
type reader struct {
	*DB
	stop []cas.Hash // don't follow references of these nodes
}

// ahead is the maximum number of nodes to prefetch, and searched the maximum size in bytes of a node that is
// searched for hashes.
const (
	ahead    = 1000
	searched = 16 << 10
)

// Get implements [cas.Getter].
func (r reader) Get(ctx context.Context, h cas.Hash) (cas.Node, error) {
	if n, ok := r.recent.get(h); ok {
		return n, ctx.Err()
	}
	found, err := r.load(ctx, h)
	return found.Node, cmp.Or(err, found.err)
}

// load reads a node and the nodes reachable from it.
func (r reader) load(ctx context.Context, h cas.Hash) (found row, err error) {
	found, _, err = r.loadAt(ctx, h)
	return found, err
}

// loadAt is like load. swept is the number of removals before.
func (r reader) loadAt(ctx context.Context, h cas.Hash) (found row, swept int64, err error) {
	const query = `with recursive led(hash) as (
			select $1::text collate "C"
			union
			select to_hash collate "C" from led join nodes n using (hash), lateral (
				select n.type union all
				select m[1] from regexp_matches(encode(n.payload, 'escape'), 'm([0-9A-F][0-9A-HJKMNP-TV-Z]{12})', 'g') m
			) x(to_hash)
			where led.hash <> all($2::text[]) and octet_length(n.payload) <= $3
		)
		select hash, type, payload, stored, tombstone from (select hash from led limit $4) l join nodes using (hash)
		where hash = $1 or octet_length(payload) <= $3`
	var rows []row
	err = r.try(ctx, func(ctx context.Context) error {
		both := &pgx.Batch{}
		both.Queue(`select swept from format`).QueryRow(func(row pgx.Row) error { return row.Scan(&swept) })
		both.Queue(query, string(h), texts(r.stop), searched, ahead).Query(func(found pgx.Rows) (err error) {
			rows, err = pgx.CollectRows(found, r.scan)
			return err
		})
		return r.pool.SendBatch(ctx, both).Close()
	})
	if err != nil {
		return row{}, 0, err
	}
	r.recent.reset(swept)
	found = row{err: notFound(h)}
	for _, read := range rows {
		if read.Hash == h {
			found = read
		}
		if read.err == nil {
			r.recent.add(read.Node, swept)
		}
	}
	return found, swept, nil
}
