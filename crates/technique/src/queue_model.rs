//! A model of a machine: users think, and then wait for one server.
//!
//! Its two parameters are measured with a single user: the service time of a command, and the time for which a user thinks
//! before the next command. From these [`QueueModel::predict`] predicts throughput and response time for any number of users
//! by mean value analysis. The prediction is exact if both times are exponentially distributed; its
//! [bounds](Prediction::limit) hold for any distribution. A model has few parameters on purpose, because calibration is the
//! greatest source of its error. It is calibrated by one measurement and *compared with another*, which may refute it.
//!
//! ```
//! use syscost_technique::queue_model::QueueModel;
//!
//! // A command takes 2 ms, its user thinks for 8 ms.
//! let model = QueueModel { service: 0.002, think: 0.008 };
//! assert_eq!(model.predict(1).throughput, 100.0);
//! // Five users would send 500 commands a second, the most that the server can serve: some users wait.
//! assert!(model.predict(5).throughput < 450.0);
//! ```
//!
//! Source: slide 97 of the [module's](super) slides; M. Reiser and S. S. Lavenberg, *Mean-Value Analysis of Closed
//! Multichain Queuing Networks* (1980).

use super::Interval;
use syscost_statistic::mean;

/// A server with its users. Times are in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueModel {
    /// The mean service time of a command.
    pub service: f64,
    /// The mean time from an answer to the same user's next command.
    pub think: f64,
}

/// The prediction of a model for one number of users.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Prediction {
    /// Commands per second.
    pub throughput: f64,
    /// Seconds from a command to its answer.
    pub response: f64,
    /// The maximum number of commands per second, for any distribution of the times.
    pub limit: f64,
}

impl QueueModel {
    /// The model calibrated with one user. The mean response time is the service time; think times are averaged too. All in
    /// seconds.
    pub fn from_measurements(responses: &[f64], thinks: &[f64]) -> Self {
        Self { service: mean(responses), think: mean(thinks) }
    }

    /// The prediction for `users` users.
    pub fn predict(self, users: usize) -> Prediction {
        let Self { service, think } = self;
        let (mut queue, mut now) = (0.0, Prediction::default());
        for n in 1..=users {
            // A command waits for all commands that it finds at the server.
            let response = service * (1.0 + queue);
            let throughput = n as f64 / (response + think);
            queue = throughput * response;
            now =
                Prediction { throughput, response, limit: (n as f64 / (service + think)).min(1.0 / service) };
        }
        now
    }

    /// The interval of the throughput for `users` users, given the intervals of the two times.
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
    fn one_user_never_waits_and_many_saturate_the_server() {
        assert_eq!(MODEL.predict(1), Prediction { throughput: 100.0, response: 0.002, limit: 100.0 });
        let many = MODEL.predict(100);
        assert!((many.throughput / 500.0 - 1.0).abs() < 1e-9 && many.limit == 500.0, "{many:?}");
        // Little's law, over thinking and waiting users.
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
    fn the_model_is_calibrated_by_mean_times() {
        assert_eq!(
            QueueModel::from_measurements(&[1.0, 3.0], &[4.0]),
            QueueModel { service: 2.0, think: 4.0 }
        );
    }
}
