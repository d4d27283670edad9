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

func (m *recent) add(n cas.Node) {
	size := len(n.Payload) + recentEntry
	if size > recentBytes/8 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.nodes[n.Hash]; known {
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

// remember caches put nodes, except those that the database stores differently.
func (db *DB) remember(put []given, different []cas.Hash) {
	other := make(map[cas.Hash]bool, len(different))
	for _, h := range different {
		other[h] = true
	}
	for _, n := range put {
		if n.tombstone == nil && !other[n.Hash] {
			db.recent.add(n.Node)
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
func (r reader) load(ctx context.Context, h cas.Hash) (row, error) {
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
	err := r.try(ctx, func(ctx context.Context) error {
		rows = rows[:0]
		found, err := r.pool.Query(ctx, query, string(h), texts(r.stop), searched, ahead)
		if err != nil {
			return err
		}
		rows, err = pgx.AppendRows(rows, found, r.scan)
		return err
	})
	if err != nil {
		return row{}, err
	}
	answer := row{err: notFound(h)}
	for _, found := range rows {
		if found.Hash == h {
			answer = found
		}
		if found.err == nil {
			r.recent.add(found.Node)
		}
	}
	return answer, nil
}
