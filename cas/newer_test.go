package cas_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/graph"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

// newerSchema simulates a later version of a kind: its schema with a title of version 9 and an additional
// field.
func newerSchema(t *testing.T, kind protocol.Kind) map[string]any {
	t.Helper()
	schema := parseJSON(t, protocol.SchemaJSON(protocol.Type{Kind: kind, Version: kind.Versions()})).(map[string]any)
	schema["title"] = protocol.Type{Kind: kind, Version: 9}.Title()
	if properties, ok := schema["properties"].(map[string]any); ok {
		properties["brandNew"] = map[string]any{"type": "string", "format": "ocas_ref"}
	}
	return schema
}

// An older uwf can read nodes of newer versions, except workflows, which would run differently than intended.
func TestNewerVersionsAreRead(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for _, a := range []cas.Algorithm{cas.XXH3, cas.XXH64} {
		s := castest.NewStore(t, a)
		require.NoError(t, s.Put(ctx, s.Kinds().Meta()))
		for _, p := range samples() {
			payload, err := cas.Encode(p)
			require.NoError(t, err)
			value, err := cas.Decode(payload)
			require.NoError(t, err)
			if fields, ok := value.(map[string]any); ok {
				fields["brandNew"] = someHash
			}
			typ := putNode(t, s, s.Kinds().MetaHash(), newerSchema(t, p.Kind())).Hash
			n := putNode(t, s, typ, value)

			kind, version, err := s.Kinds().Of(ctx, s, typ)
			require.NoError(t, err)
			require.Equal(t, protocol.Type{Kind: p.Kind(), Version: 9}, protocol.Type{Kind: kind, Version: version})
			got, err := readKind(ctx, s, p.Kind(), n.Hash)
			if p.Kind() == protocol.KindWorkflow {
				require.ErrorIs(t, err, &protocol.Error{Code: protocol.CodeUnsupportedVersion})
				prosetest.Error(t, err, protocol.CodeUnsupportedVersion)
				continue
			}
			require.NoError(t, err, p.Kind())
			require.Equal(t, p, got)
			refs, err := graph.Refs(ctx, s, n)
			require.NoError(t, err)
			if p.Kind() != protocol.KindText {
				require.Contains(t, refs, someHash, "what only a newer uwf knows is still kept")
			}
		}
	}
}

// Only an extended schema is a newer version, not any schema with such a title.
func TestNotNewerVersion(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := castest.NewStore(t, cas.XXH3)
	require.NoError(t, s.Put(ctx, s.Kinds().Meta()))
	grown := newerSchema(t, protocol.KindStep)
	without := newerSchema(t, protocol.KindStep)
	delete(without["properties"].(map[string]any), "prev")
	noRef := newerSchema(t, protocol.KindStep)
	noRef["properties"].(map[string]any)["prev"] = map[string]any{"type": "string"}
	titled := func(title string) map[string]any {
		schema := maps.Clone(grown)
		schema["title"] = title
		return schema
	}
	for name, schema := range map[string]map[string]any{
		"a field is gone": without, "a ref is none any more": noRef, "known, and not ours": titled("@uwf/step"),
		"no such kind": titled("@uwf/steps.9"), "zeros": titled("@uwf/step.09"), "no number": titled("@uwf/step.x"), "zero": titled("@uwf/step.0"),
		"another type": {"title": "@uwf/text.9", "type": "object"}, "no title": titled(""),
	} {
		kind, _, err := s.Kinds().Of(ctx, s, putNode(t, s, s.Kinds().MetaHash(), schema).Hash)
		require.NoError(t, err, name)
		require.Empty(t, kind, name)
	}
	_, _, err := s.Kinds().Of(ctx, s, someHash)
	require.ErrorIs(t, err, cas.ErrNotFound)
}

// Payloads keep their hashes, because the lowest possible version is used.
func TestHashesOfPayloadsStay(t *testing.T) {
	t.Parallel()
	b, _ := newBatch(t)
	var got []cas.Hash
	for _, p := range samples() {
		if p.Version() > 1 {
			continue
		}
		h, err := b.Add(t.Context(), p)
		require.NoError(t, err)
		got = append(got, h)
	}
	require.Equal(t, []cas.Hash{"47DMMPJT2X2A5", "9N8FKRX8R2MDW", "F8FBJ4SYM87M4", "4HAXDW398H6SN", "A99MQG6GBH1YC", "0YZJM8XWMHNPH", "5V3C8G7SDGNNQ", "E6H9Z3F5H7EB4"}, got)
	require.Equal(t, []protocol.Type{{Kind: "text", Version: 1}, {Kind: "suspend", Version: 1}, {Kind: "turn", Version: 1}, {Kind: "detail", Version: 1},
		{Kind: "workflow", Version: 1}, {Kind: "start", Version: 1}, {Kind: "step", Version: 1}}, protocol.Foundation(), "it is frozen")
}
