//! A model of a machine: users who think and then wait for one server.
//!
//! Its two parameters are what is measured with a single user: the service time of a command, and the time for which a
//! user thinks before the next. From these [`QueueModel::predict`] predicts throughput and response time for any number of
//! users by mean value analysis, exactly if both times vary exponentially, and at their [bounds](Prediction::limit)
//! whatever they are. A model has few parameters on purpose: calibration is the greatest source of its error, so it is
//! calibrated by one measurement and *held against another*, which may refuse it.
//!
//! ```
//! use syscost_technique::queue_model::QueueModel;
//!
//! // A command takes 2 ms, its user thinks for 8 ms.
//! let model = QueueModel { service: 0.002, think: 0.008 };
//! assert_eq!(model.predict(1).throughput, 100.0);
//! // Five users would ask for 500 a second, the most that the server can do: some wait.
//! assert!(model.predict(5).throughput < 450.0);
//! ```
//!
//! Source: slide 97 of the [module's](super) own; M. Reiser and S. S. Lavenberg, *Mean-Value Analysis of Closed
//! Multichain Queuing Networks* (1980).

use super::Interval;
use syscost_statistic::mean;

/// A server with its users, times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueModel {
    /// The mean service time of a command.
    pub service: f64,
    /// The mean time from an answer to the same user's next command.
    pub think: f64,
}

/// What a model predicts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Prediction {
    /// Commands a second.
    pub throughput: f64,
    /// Seconds from a command to its answer.
    pub response: f64,
    /// The most commands a second, however the times vary.
    pub limit: f64,
}

impl QueueModel {
    /// The model that was calibrated with one user: mean response, which is the service, and mean think time.
    pub fn from_measurements(responses: &[f64], thinks: &[f64]) -> Self {
        Self { service: mean(responses), think: mean(thinks) }
    }

    /// The prediction for `users` users.
    pub fn predict(self, users: usize) -> Prediction {
        let Self { service, think } = self;
        let (mut queue, mut now) = (0.0, Prediction::default());
        for n in 1..=users {
            // A command finds what the others leave there.
            let response = service * (1.0 + queue);
            let throughput = n as f64 / (response + think);
            queue = throughput * response;
            now =
                Prediction { throughput, response, limit: (n as f64 / (service + think)).min(1.0 / service) };
        }
        now
    }

    /// Throughput for `users` users, over the intervals in which the two times lie.
    pub fn throughput_interval(service: Interval, think: Interval, users: usize) -> Interval {
        let throughput = |service, think| Self { service, think }.predict(users).throughput;
        Interval {
            estimate: throughput(service.estimate, think.estimate),
            low: throughput(service.high, think.high),
            high: throughput(service.low, think.low),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: QueueModel = QueueModel { service: 0.002, think: 0.008 };

    #[test]
    fn one_user_waits_for_nobody_and_many_for_the_server() {
        assert_eq!(MODEL.predict(1), Prediction { throughput: 100.0, response: 0.002, limit: 100.0 });
        let many = MODEL.predict(100);
        assert!((many.throughput / 500.0 - 1.0).abs() < 1e-9 && many.limit == 500.0, "{many:?}");
        // Little's law, over users who think and users who wait.
        assert!((many.throughput * (many.response + 0.008) - 100.0).abs() < 1e-9);
        assert_eq!(MODEL.predict(0), Prediction::default());
    }

    #[test]
    fn two_users_are_the_birth_and_death_process_of_the_textbook() {
        // States 0, 1, 2 at the server; rates 2λ, λ and μ, with λ = 1/think and μ = 1/service.
        let ratio = MODEL.service / MODEL.think;
        let weights = [1.0, 2.0 * ratio, 2.0 * ratio * ratio];
        let busy = 1.0 - weights[0] / weights.iter().sum::<f64>();
        assert!((MODEL.predict(2).throughput - busy / MODEL.service).abs() < 1e-9);
    }

    #[test]
    fn uncertain_times_make_an_uncertain_prediction() {
        let within = |half: f64| {
            let service = Interval::around(0.002, half * 0.002);
            QueueModel::throughput_interval(service, Interval::around(0.008, half * 0.008), 5)
        };
        assert_eq!(within(0.0).low, within(0.0).high);
        assert!(within(0.1).low < within(0.1).estimate && within(0.1).estimate < within(0.1).high);
    }

    #[test]
    fn it_is_calibrated_by_means() {
        assert_eq!(
            QueueModel::from_measurements(&[1.0, 3.0], &[4.0]),
            QueueModel { service: 2.0, think: 4.0 }
        );
    }
}
