// Package view is what there is to show of threads, as values: which there are
// ([Listed], [Items]), where one stands and what is to be done next ([Thread], [Next]),
// its steps and turns ([History], [Turns], [Live]), its way through the graph
// ([TraceOf]), what is wrong with it ([Diagnose]), and what happens to it now ([Watch]);
// and of all of them what waits for a person ([Inbox]) and what they have cost ([Stats]).
// It changes nothing and takes no lock. How it looks is the caller's.
//
// Errors are those of the engine and the store.
package view
