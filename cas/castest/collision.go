package castest

import (
	"encoding/binary"
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
)

// Collision returns two nodes with different contents and the same hash: arrays of 33 numbers, 64 bytes with
// the type. Neither hash function is designed to resist deliberate collisions.
func Collision(t testing.TB, a cas.Algorithm) (cas.Node, cas.Node) {
	t.Helper()
	one, two := collideXXH3()
	if a == cas.XXH64 {
		one, two = collideXXH64(t)
	}
	const typ = "0000000000000"
	n := cas.Node{Hash: a.Sum(typ, one), Type: typ, Payload: one, Timestamp: 1}
	m := cas.Node{Hash: a.Sum(typ, two), Type: typ, Payload: two, Timestamp: 2}
	require.NotEqual(t, n.Payload, m.Payload)
	require.Equal(t, n.Hash, m.Hash)
	require.NoError(t, a.Check(n))
	require.NoError(t, a.Check(m))
	return n, m
}

// payload returns an array of 33 zeros that is 51 bytes long with two floats whose heads are at the given
// offsets.
func payload(floatAt ...int) []byte {
	p := make([]byte, 51)
	p[0], p[1] = 0x98, 33
	for _, at := range floatAt {
		p[at] = 0xfb
	}
	return p
}

// collideXXH3 returns a collision. XXH3 multiplies two words of the input, each mixed with a part of a
// publicly known secret. A word equal to that part makes the product zero for any other word. Bytes 16 to 24
// of the input are such a word.
func collideXXH3() (one, two []byte) {
	const secret32 = "\xcb\x79\xe6\x4e\xcc\xc0\xe5\x78"
	make := func(other string) []byte {
		p := payload(2, 11)
		copy(p[3:], secret32)
		copy(p[12:], other)
		p[19] = 1
		return p
	}
	return make("\xbf\xf1\x11\x11\x11\x11\x11"), make("\xbf\xf2\x22\x22\x22\x22\x22")
}

// collideXXH64 returns a collision. The fourth lane of XXH64 processes bytes 24 to 32, then 56 to 64; for any
// first word there is a second one that leads to the same state.
func collideXXH64(t testing.TB) (one, two []byte) {
	const p1, p2 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F
	round := func(state, word uint64) uint64 { return bits.RotateLeft64(state+word*p2, 31) * p1 }
	var zero uint64
	first := zero - p1
	inverse := invert(p2)

	make := func(a, b uint64) []byte {
		p := payload(10, 42)
		binary.LittleEndian.PutUint64(p[11:], a)
		binary.LittleEndian.PutUint64(p[43:], b)
		return p
	}
	const a, b = 0x1111_1111_1111_f1bf, 0x2222_2222_2222_f2bf
	one = make(a, b)
	for other := uint64(a + 1<<32); ; other += 1 << 32 {
		two = make(other, b+(round(first, a)-round(first, other))*inverse)
		if cas.CheckCanonical(two) == nil {
			return one, two
		}
		require.Less(t, other, uint64(a+1000<<32), "a canonical twin is found at once")
	}
}

// invert returns the multiplicative inverse of an odd number modulo 2^64.
func invert(n uint64) uint64 {
	x := n
	for range 6 {
		x *= 2 - n*x
	}
	return x
}
