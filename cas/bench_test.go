package cas_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/protocol"
)

// sampleStep is a realistic step, about 700 bytes of JSON.
func sampleStep() protocol.Step {
	return protocol.Step{
		Start: someHash, Prev: new(someHash), Index: 4711, Visits: map[string]int{"planner": 1, "developer": 2355, "reviewer": 2355},
		Role: "developer", Output: someHash, Detail: someHash, Agent: "uwf-builtin",
		EdgePrompt: "The reviewer has rejected the change: the test of the empty input is missing. Add it, then run all tests.",
		Cwd:        "/home/someone/projects/demo", StartedAtMs: 1780000000000, CompletedAtMs: 1780000060000,
		SessionID: "01K0000000000000000000000", Prompt: new(someHash), ExtractedBy: protocol.ByFrontmatter,
		Usage: &protocol.Usage{Turns: 12, InputTokens: 40000, OutputTokens: 2000, CacheReadTokens: 90000, DurationMs: 60000},
	}
}

func BenchmarkEncodeStep(b *testing.B) {
	step := sampleStep()
	for b.Loop() {
		if _, err := cas.Encode(step); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeStep(b *testing.B) {
	payload, err := cas.Encode(sampleStep())
	require.NoError(b, err)
	n := cas.Node{Payload: payload}
	for b.Loop() {
		var step protocol.Step
		if err := n.Decode(&step); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeValue(b *testing.B) {
	payload, err := cas.Encode(sampleStep())
	require.NoError(b, err)
	for b.Loop() {
		if _, err := cas.Decode(payload); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadStep(b *testing.B) {
	ctx := context.Background()
	s := castest.NewStore(b, cas.XXH3)
	batch := cas.NewBatch(s, noon)
	h, err := batch.Add(ctx, sampleStep())
	require.NoError(b, err)
	require.NoError(b, batch.Commit(ctx))
	for b.Loop() {
		if _, err := cas.Read[protocol.Step](ctx, s, h); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSum(b *testing.B) {
	payload, err := cas.Encode(sampleStep())
	require.NoError(b, err)
	for _, a := range []cas.Algorithm{cas.XXH3, cas.XXH64} {
		b.Run(string(a), func(b *testing.B) {
			for b.Loop() {
				a.Sum(someHash, payload)
			}
		})
	}
}

// The first commit of a process also computes the hashes of the kinds.
func BenchmarkNewKinds(b *testing.B) {
	for b.Loop() {
		cas.NewKinds(cas.XXH3).Hash(protocol.KindStep)
	}
}
