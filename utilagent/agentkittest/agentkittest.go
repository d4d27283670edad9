// Package agentkittest tests an agent in memory.
package agentkittest
