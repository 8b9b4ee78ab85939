// Package providertest is the conformance suite of keyseq's providers. Run checks the contract of package jms, one case for each
// rule of its documentation, one for each field of Capabilities and one for each optional interface. RunManager runs a real
// SequenceManager on the provider and checks the guarantees G1 to G8.
//
// A provider's own test is about twenty lines:
//
//	func TestConformance(t *testing.T) {
//		h := providertest.Harness{
//			New: func(t testing.TB) providertest.Broker {
//				server := startServer(t)
//				server.Declare("IN", "OUT")
//				return providertest.Broker{
//					Factory: &acme.Factory{URL: server.URL},
//					Queue:   "IN", Other: "OUT", Unknown: "NO.SUCH.QUEUE",
//					Send:  server.Send,
//					Break: func(c jms.Connection) { server.Cut(c) },
//				}
//			},
//		}
//		t.Run("Provider", func(t *testing.T) { providertest.Run(t, h) })
//		t.Run("Manager", func(t *testing.T) { providertest.RunManager(t, h) })
//	}
//
// Capabilities are checked both ways: what a provider declares must work, and what it does not declare it must refuse or leave out.
// What a harness has no power for (it cannot break a connection, say) is skipped, and the skip says which power is missing.
//
// # Waiting
//
// No case waits for ever. A call that does not return within Harness.Patience fails its case; the goroutine that is stuck in it
// is left behind. In a bubble of testing/synctest all these times are virtual. A goroutine that blocks there without being
// durably blocked (on a mutex, or in a system call) stops virtual time: after two minutes of real time the suite panics and
// names the case, because a bubble cannot be left in any other way.
package providertest
