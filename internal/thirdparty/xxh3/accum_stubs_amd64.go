package xxh3

import (
	"unsafe"
)

// Asking the processor for more takes longer than hashing a step's nodes.
const (
	hasAVX2   = false
	hasSSE2   = true // on each amd64
	hasAVX512 = false
)

const hasNEON = false

func accumAVX2(acc *[8]u64, data, key unsafe.Pointer, len u64) { panic("unreachable") }

func accumAVX512(acc *[8]u64, data, key unsafe.Pointer, len u64) { panic("unreachable") }

//go:noescape
func accumSSE(acc *[8]u64, data, key unsafe.Pointer, len u64)

func accumBlockAVX2(acc *[8]u64, data, key unsafe.Pointer) { panic("unreachable") }

func accumBlockAVX512(acc *[8]u64, data, key unsafe.Pointer) { panic("unreachable") }

//go:noescape
func accumBlockSSE(acc *[8]u64, data, key unsafe.Pointer)

func accumNEON(acc *[8]u64, data, key unsafe.Pointer, len u64) { panic("unreachable") }
func accumBlockNEON(acc *[8]u64, data, key unsafe.Pointer)     { panic("unreachable") }
