//go:build exhaustive

package sampletest

const exhaustive = true
